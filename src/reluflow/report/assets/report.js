"use strict";
(async () => {
  const { figures, dark } = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const NARROW = 620; // px: below, the panels of a figure stand in one column
  const PRINT_WIDTH = 660; // px: fits A4 and letter with their margins
  const PRINT_HEIGHT = 0.8; // of the height on a screen: two or three figures on a sheet
  const STEP_MS = 120;
  const STEADY_MS = 1000; // for readers who asked their system for less motion
  const NUMBERS = new Set(["x", "y", "z", "text", "size", "bdata", "customdata"]);
  const plots = [...document.querySelectorAll(".plot")];
  const moment = figures.map((spec) => spec.layout.meta.first ?? 0); // the frame of each figure
  let cursor = null; // the time of the movie that was moved last, on the axes of figures with a cursor
  let printing = false;

  // ---- the library that draws, unpacked into a script that the policy knows by its hash

  const packed = document.getElementById("library");
  if (packed) {
    const bytes = Uint8Array.from(atob(packed.textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  // ---- texts of the cells of rasters, kept as names of rows and categories

  for (const trace of figures.flatMap((spec) => spec.data)) {
    if (trace.type !== "heatmap" || !trace.meta?.categories) continue;
    const { rows, categories } = trace.meta;
    const cells = Uint8Array.from(atob(trace.z.bdata), (character) => character.charCodeAt(0));
    const columns = cells.length / rows.length;
    trace.text = rows.map((row, r) =>
      Array.from({ length: columns }, (_, c) => row + categories[cells[r * columns + c]]),
    );
  }

  // ---- paced axes: knots of values and of their places; traces hold places

  const between = (given, knots, places) => {
    let k = 1;
    while (k < knots.length - 1 && given > knots[k]) k += 1;
    return places[k - 1] + ((given - knots[k - 1]) * (places[k] - places[k - 1])) / (knots[k] - knots[k - 1]);
  };
  const listed = (given) => {
    if (!given?.bdata) return given ?? [];
    return [...new Float32Array(Uint8Array.from(atob(given.bdata), (character) => character.charCodeAt(0)).buffer)];
  };
  for (const { data, layout } of figures) {
    for (const trace of data) {
      const [values, places] = layout.meta.pace?.[trace.xaxis] ?? [];
      if (!values) continue;
      const x = listed(trace.x);
      if (trace.type === "heatmap") { // x are edges, texts a table of the cells
        const row = x.slice(1).map((place) => between(place, places, values));
        trace.customdata = trace.text?.map(() => row);
      } else {
        trace.customdata = x.map((place) => (Number.isFinite(place) ? between(place, places, values) : null));
      }
    }
  }

  // ---- figures

  const recoloured = (value) => {
    if (typeof value === "string") return dark[value] ?? value;
    if (Array.isArray(value)) return value.map(recoloured);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [key, NUMBERS.has(key) && Array.isArray(part) ? part : recoloured(part)]),
    );
  };

  const merged = (layout, changes) => {
    const result = { ...layout };
    for (const [key, part] of Object.entries(changes ?? {})) {
      result[key] = typeof part === "object" ? { ...result[key], ...part } : part;
    }
    return result;
  };

  const changed = (trace, changes) => // null says that a part is gone
    Object.fromEntries(Object.entries({ ...trace, ...changes }).filter(([, part]) => part !== null));

  const cursors = (spec) =>
    (spec.layout.meta.cursor ?? []).map((axis) => {
      const pace = spec.layout.meta.pace?.[axis];
      const x = pace ? between(cursor, ...pace) : cursor;
      return {
        type: "line", xref: axis, yref: `${axis.replace("x", "y")} domain`, x0: x, x1: x, y0: 0, y1: 1,
        line: { color: "#6b7075", width: 1.5, dash: "dot" },
      };
    });

  const draw = (plot) => {
    const spec = figures[plot.dataset.figure];
    const frame = spec.frames[moment[plot.dataset.figure]];
    const width = printing ? PRINT_WIDTH : plot.clientWidth;
    const narrow = width < NARROW;
    const data = [...spec.data];
    if (frame) frame.traces.forEach((index, k) => { data[index] = changed(data[index], frame.data[k]); });
    const layout = merged(merged(spec.layout, frame?.layout && { shapes: null, annotations: null }), narrow && spec.layout.meta.narrow);
    Object.assign(layout, frame?.layout, { width, dragmode: narrow ? false : "zoom" });
    if (cursor !== null && !printing) layout.shapes = [...(layout.shapes ?? []), ...cursors(spec)];
    if (printing) layout.height = Math.round(PRINT_HEIGHT * layout.height);
    plot.style.height = `${layout.height}px`;
    const night = root.dataset.theme === "dark" && !printing;
    return Plotly.react(plot, ...(night ? recoloured([data, layout]) : [structuredClone(data), structuredClone(layout)]), {
      displayModeBar: false, // six stops of the tab key in every figure, for what a drag does too
    });
  };
  const mark = (plot) => { // the cursor alone: cheaper than drawing everything again
    const spec = figures[plot.dataset.figure];
    const shapes = [...(spec.layout.shapes ?? []), ...(cursor === null ? [] : cursors(spec))];
    Plotly.relayout(plot, { shapes: root.dataset.theme === "dark" ? recoloured(shapes) : structuredClone(shapes) });
  };
  const drawAll = () => plots.forEach(draw);

  // ---- movies

  const patience = () =>
    window.matchMedia("(prefers-reduced-motion: reduce)").matches ? STEADY_MS : STEP_MS;

  for (const player of document.querySelectorAll(".player")) {
    const index = Number(player.dataset.figure);
    const plot = plots.find((one) => Number(one.dataset.figure) === index);
    const button = player.querySelector("button");
    const slider = player.querySelector("input");
    const output = player.querySelector("output");
    const labels = JSON.parse(player.dataset.labels);
    let timer = null;

    const show = (k) => {
      moment[index] = Math.max(0, Math.min(labels.length - 1, k));
      slider.value = moment[index];
      slider.setAttribute("aria-valuetext", labels[moment[index]]);
      output.textContent = labels[moment[index]];
      draw(plot);
      cursor = figures[index].layout.meta.times?.[moment[index]] ?? null;
      plots.filter((one) => figures[one.dataset.figure].layout.meta.cursor?.length).forEach(mark);
    };
    const pause = () => {
      clearTimeout(timer);
      timer = null;
      button.textContent = "Play";
    };
    const next = () => {
      if (moment[index] >= labels.length - 1) {
        pause();
        return;
      }
      show(moment[index] + 1);
      timer = setTimeout(next, patience());
    };
    const play = () => {
      if (moment[index] >= labels.length - 1) show(0);
      button.textContent = "Pause";
      timer = setTimeout(next, patience());
    };
    const toggle = () => (timer === null ? play() : pause());

    button.addEventListener("click", toggle);
    slider.addEventListener("input", () => {
      pause();
      show(Number(slider.value));
    });
    player.addEventListener("keydown", (event) => {
      if (event.key === " " && event.target === slider) {
        event.preventDefault();
        toggle();
      } else if (event.target === button && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
        event.preventDefault();
        pause();
        show(moment[index] + (event.key === "ArrowRight" ? 1 : -1));
      }
    });
  }

  // ---- one figure as a file

  const offer = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
  };
  for (const bar of document.querySelectorAll(".save")) {
    const plot = plots.find((one) => one.dataset.figure === bar.dataset.figure);
    const name = bar.dataset.name;
    bar.addEventListener("click", (event) => {
      const kind = event.target.dataset.kind;
      if (kind === "svg" || kind === "png") {
        Plotly.downloadImage(plot, { format: kind, filename: name, width: plot.clientWidth, height: plot.clientHeight, scale: kind === "png" ? 3 : 1 });
      } else if (kind === "data") {
        offer(`${name}.json`, "application/json", JSON.stringify(figures[bar.dataset.figure]));
      }
    });
  }

  // ---- theme and print

  const themeButton = document.getElementById("theme");
  const nameTheme = () => {
    themeButton.textContent = root.dataset.theme === "dark" ? "Light colours" : "Dark colours";
  };
  document.addEventListener("themechange", () => {
    nameTheme();
    drawAll();
  });
  themeButton.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    document.dispatchEvent(new Event("themechange"));
  });
  window.addEventListener("beforeprint", () => {
    printing = true;
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    drawAll();
  });
  let pending = null;
  let drawnWidth = window.innerWidth;
  window.addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(() => {
      if (window.innerWidth !== drawnWidth) {
        drawnWidth = window.innerWidth;
        drawAll();
      }
    }, 150);
  });

  // ---- the filter of the claims

  const filter = document.querySelector(".filter");
  filter?.addEventListener("change", () => {
    const wanted = new Set([...filter.querySelectorAll(":checked")].map((box) => box.value));
    const rows = [...document.querySelectorAll("tr[data-verdict]")];
    rows.forEach((row) => { row.hidden = !wanted.has(row.dataset.verdict); });
    const count = rows.filter((row) => !row.hidden).length;
    filter.querySelector(".shown").textContent = `${count} of ${rows.length} rows shown`;
  });

  // ---- downloads: browsers limit the length of addresses, so large files go through a blob

  for (const link of document.querySelectorAll("a[download]")) {
    link.addEventListener("click", () => {
      if (!link.href.startsWith("data:")) return;
      const [head, body] = link.getAttribute("href").slice(5).split(";base64,");
      const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
      link.href = URL.createObjectURL(new Blob([bytes], { type: head }));
    });
  }

  nameTheme();
  drawAll();
  root.dataset.ready = "true";
})();
