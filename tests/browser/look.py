"""Questions put to the page in its own language."""

# every element with words of its own: colour against the first opaque background behind it
CONTRASTS = """() => {
  const parse = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const weights = [0.2126, 0.7152, 0.0722];
  const light = (rgb) => rgb.reduce((sum, c, k) => sum + weights[k] * linear(c / 255), 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const shade = parse(getComputedStyle(e).backgroundColor);
      if (shade.alpha === 1) return shade.rgb;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest("script, noscript, style, .modebar, .hoverlayer")) continue;
    const words = [...element.childNodes].filter((n) => n.nodeType === 3 && n.data.trim());
    if (!words.length || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const front = parse(element.closest("svg") ? style.fill : style.color);
    const back = behind(element);
    const mixed = front.rgb.map((c, k) => c * front.alpha + back[k] * (1 - front.alpha));
    const [low, high] = [light(mixed), light(back)].sort((a, b) => a - b);
    found.push([element.tagName, words[0].data.trim().slice(0, 30), (high + 0.05) / (low + 0.05)]);
  }
  return found;
}"""

# what has the focus, and whether one can see that
FOCUS = """() => {
  const e = document.activeElement;
  const style = getComputedStyle(e);
  return {
    tag: e.tagName,
    name: e.id || e.className || e.getAttribute("href") || e.value || "",
    words: (e.getAttribute("aria-label") || e.textContent || "").trim().slice(0, 40),
    download: e.getAttribute("download"),
    visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
  };
}"""

OVERFLOW = "() => document.scrollingElement.scrollWidth - window.innerWidth"
POSITIONS = """() => [...document.querySelectorAll('#figure-3 .points path')]
  .flatMap((path) => path.getAttribute('transform').match(/[\\d.]+/g).map(Number))"""
STROKES = """(figure) =>
  [...document.querySelectorAll(`#figure-${figure} .scatterlayer path.js-line`)]
  .map((path) => getComputedStyle(path).stroke)"""
# where plotly has the two panels of figure 5: [left, right] and [bottom, top] of each
PANELS = """() => {
  const layout = document.querySelector('#figure-5 .plot')._fullLayout;
  return ['', '2'].map((k) => [layout['xaxis' + k].domain, layout['yaxis' + k].domain]);
}"""
ADD_SCRIPT = """(text) => {
  const element = document.createElement('script');
  element.textContent = text;
  document.body.append(element);
}"""
