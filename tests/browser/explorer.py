"""The explorer opened in Chromium: one tab with its app, and questions to it."""

from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE_MS = 120_000
APP = "document.getElementById('app').explorer"


@dataclass
class Tab:
    """A tab of the explorer with everything it said and asked for."""

    page: object
    server: object
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def app(self, code, argument=None):
        """Evaluate ``code``, a function of the application and one argument."""
        return self.page.evaluate(f"(argument) => ({code})({APP}, argument)", argument)

    def exact(self):
        """Wait for the full run of the newest state and the picture of it."""
        for _ in range(6000):
            done = self.app(
                "(a) => a.link.inFlight === null && a.link.waiting === null && a.run !== null"
                " && a.link.log.length > 0 && a.link.log.at(-1).kind === 'full'"
                " && a.link.log.at(-1).outcome !== undefined && !a.queued"
            )
            if done:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(self.app("(a) => [a.badge.textContent, a.alert.textContent]"))

    def slow(self):
        """Wait for the end of the slow lane."""
        self.page.wait_for_selector("#app[data-slow~=done]")

    def state(self):
        return self.app("(a) => a.state")

    def use(self, preset):
        self.page.select_option("#preset", preset)
        self.exact()


@contextmanager
def opened(chromium, server, *, width=1400, fragment="", wait=True, **options):
    """A tab in a fresh context; options are those of a Playwright context."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
    context.set_default_timeout(PATIENCE_MS)  # a busy machine is no failure
    page = context.new_page()
    tab = Tab(page, server)
    page.on("console", lambda message: tab.messages.append(message.text))
    page.on("pageerror", lambda error: tab.messages.append(str(error)))
    page.on("request", lambda request: tab.requests.append(request.url))
    page.on("websocket", lambda socket: tab.requests.append(socket.url))
    page.goto(server.url + fragment)
    if wait:
        page.wait_for_selector("#app[data-ready=run]", timeout=2 * PATIENCE_MS)
        tab.exact()
    try:
        yield tab
    finally:
        context.close()
