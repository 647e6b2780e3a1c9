"""The servers of one process's client: which of them a request goes to, and when."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx2
import openai

from harness.errors import UserError
from harness.llm.completion import Kind
from harness.llm.endpoints import IN_PROCESS, Endpoint
from harness.llm.limiter import Limiter
from harness.llm.slots import Slots

logger = logging.getLogger(__name__)

CONNECT_S = 10.0
# A server with so many attempts in a row unanswered gets no others while another one answers, but one now and then.
SILENT_AFTER = 3
PROBE_EVERY_S = 5.0


class Server:
    """One server, and what is known of its state.

    Args:
        url: Its base URL.
        endpoint: The entry that names it.
        http: What carries requests.
        slots: Folder of the limits that processes share; ``None`` where no other process asks this server.

    Attributes:
        names: By the model's own name, what this server calls it, the name to ask by first; it may answer by another.
    """

    def __init__(self, url: str, endpoint: Endpoint, http: httpx2.AsyncClient, slots: Path | None) -> None:
        self.url = url
        self.client = openai.AsyncOpenAI(
            api_key=endpoint.api_key,
            base_url="http://in-process/v1" if url == IN_PROCESS else url,
            max_retries=0,
            http_client=http,
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
        )
        self.limiter = Limiter(endpoint.max_in_flight)
        self.waiting_lines: deque[Pool] = deque()
        self.names: dict[str, tuple[str, ...]] = {}
        self._slots = None
        if slots is not None and url != IN_PROCESS:
            path = slots / hashlib.sha256(url.encode()).hexdigest()[:16]
            self._slots = Slots(path, endpoint.max_in_flight, self.let_in, self._turn_away)
        self._unanswered = 0
        self._next_probe = 0.0

    @property
    def has_room(self) -> bool:
        """Whether it may be sent another request now."""
        return self.limiter.has_room and (self._slots is None or self._slots.has_room)

    @property
    def load(self) -> float:
        """Requests in flight as a share of its limit."""
        return self.limiter.in_flight / self.limiter.limit

    @property
    def in_doubt(self) -> bool:
        """Whether it has left its last requests unanswered, and it is not yet time to try one."""
        probing = self.limiter.in_flight > 0 or time.monotonic() < self._next_probe
        return self._unanswered >= SILENT_AFTER and probing

    def begin(self) -> None:
        """Count a request in."""
        if self._slots is not None:
            self._slots.begin()
        self.limiter.begin()

    def end(self) -> None:
        """Count a request out, and let in who waits."""
        self.limiter.end()
        if self._slots is not None:
            self._slots.end()
        self.let_in()

    def answered(self) -> None:
        """Learn from a reply."""
        self._heard()
        self.limiter.succeeded()

    def failed(self, kind: Kind) -> None:
        """Learn from an attempt without a reply."""
        if kind is Kind.SILENT:
            self._unanswered += 1
            self._next_probe = time.monotonic() + PROBE_EVERY_S
            if self._unanswered == SILENT_AFTER:
                logger.warning("%s does not answer; calls are tried again for some minutes", self.url)
        else:
            self._heard()
        if kind is Kind.BUSY:
            self.limiter.refused()
        elif kind in (Kind.SILENT, Kind.TROUBLED):
            self.limiter.troubled()

    def _heard(self) -> None:
        if self._unanswered >= SILENT_AFTER:
            logger.warning("%s answers again", self.url)
        self._unanswered = 0

    def let_in(self) -> None:
        """Give free places to calls that wait, the backbones it serves taking turns."""
        self.waiting_lines.rotate()
        for line in self.waiting_lines:
            line.let_in()

    def _turn_away(self, error: UserError) -> None:
        for line in self.waiting_lines:
            line.turn_away(error)

    def want(self) -> None:
        """Tell the other processes how much more this one could use."""
        if self._slots is not None:
            waiting = sum(line.waiting_each for line in self.waiting_lines)
            self._slots.want(min(waiting, max(0, self.limiter.limit - self.limiter.in_flight)))

    def close(self) -> None:
        """Give its slots back."""
        if self._slots is not None:
            self._slots.close()


class Pool:
    """The servers of one backbone, and the calls that wait for one of them, first come, first served.

    Attributes:
        servers: All that are asked for the backbone.
        signs_of_life: Answers so far, refusals included.
    """

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self.signs_of_life = 0
        self._line: deque[tuple[asyncio.Future[Server], Server | None]] = deque()
        for server in servers:
            server.waiting_lines.append(self)

    @property
    def waiting_each(self) -> int:
        """Calls that wait, spread over the servers."""
        return -(-len(self._line) // len(self.servers))

    async def enter(self, avoid: Server | None = None) -> Server:
        """Wait for a place at the least loaded server, if possible another than ``avoid``.

        Raises:
            UserError: The limit that processes share cannot be worked with.
        """
        future: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
        self._line.append((future, avoid))
        self.let_in()
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():
                # Who left meanwhile may have taken it out already.
                with contextlib.suppress(ValueError):
                    self._line.remove((future, avoid))
            else:
                future.result().end()
            raise

    def let_in(self) -> None:
        """Give free places to those who wait."""
        while self._line and (server := self._best(self._line[0][1])) is not None:
            future, _ = self._line.popleft()
            if not future.done():
                server.begin()
                future.set_result(server)
        for server in self.servers:
            server.want()

    def turn_away(self, error: UserError) -> None:
        """Tell all who wait that they wait in vain."""
        while self._line:
            future, _ = self._line.popleft()
            if not future.done():
                future.set_exception(error)

    def leave_out(self, servers: Sequence[Server]) -> None:
        """Ask some of the servers nothing, from now on."""
        for server in servers:
            server.waiting_lines.remove(self)
        self.servers = [server for server in self.servers if server not in servers]

    def _best(self, avoid: Server | None) -> Server | None:
        sure = [server for server in self.servers if not server.in_doubt] or self.servers
        ready = [server for server in sure if server.has_room]
        return min(ready, key=lambda server: (server is avoid, server.load), default=None)


def pools(endpoints: Mapping[str, Endpoint], http: httpx2.AsyncClient, slots: Path | None) -> dict[str, Pool]:
    """The servers of every backbone; backbones that name the same URL share the server.

    Raises:
        UserError: A key is not set, or the limits that processes share cannot be worked with.
    """
    servers: dict[str, Server] = {}
    with contextlib.ExitStack() as opened:
        for endpoint in endpoints.values():
            for url in endpoint.urls:
                if url not in servers:
                    servers[url] = Server(url, endpoint, http, slots)
                    opened.callback(servers[url].close)
        opened.pop_all()
    return {key: Pool([servers[url] for url in endpoint.urls]) for key, endpoint in endpoints.items()}
