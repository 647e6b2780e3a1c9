"""The servers of one process's client: which of them a request goes to, and when."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import httpx2
import openai

from harness.concurrency import gather
from harness.llm.completion import AttemptError, Kind, attempt
from harness.llm.endpoints import IN_PROCESS, Endpoint
from harness.llm.limiter import Limiter
from harness.llm.outage import PROBE_EVERY_S, Trouble, Watch
from harness.llm.pace import Pace
from harness.llm.request import Message, Request
from harness.llm.slots import Slots

logger = logging.getLogger(__name__)

CONNECT_S = 10.0
# A server with so many attempts in a row unanswered gets no others while another one answers, but one now and then.
SILENT_AFTER = 3
# For one token; long enough for a server with much to do.
_PROBE_S = 30.0


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
        self.heard()
        self.limiter.succeeded()

    def failed(self, kind: Kind) -> None:
        """Learn from an attempt without a reply."""
        if kind.is_unanswered:
            self._unanswered += 1
            self._next_probe = time.monotonic() + PROBE_EVERY_S
            if self._unanswered == SILENT_AFTER and self._has_company:
                logger.warning("%s does not answer; calls go to the others", self.url)
        else:
            self.heard()
        if kind is Kind.BUSY:
            self.limiter.refused()
        elif kind in (Kind.SILENT, Kind.TROUBLED):
            self.limiter.troubled()

    def heard(self) -> None:
        """Learn that it lives."""
        if self._unanswered >= SILENT_AFTER and self._has_company:
            logger.warning("%s answers again", self.url)
        self._unanswered = 0

    @property
    def _has_company(self) -> bool:
        return any(len(line.servers) > 1 for line in self.waiting_lines)

    def let_in(self) -> None:
        """Give free places to calls that wait, the backbones it serves taking turns."""
        self.waiting_lines.rotate()
        for line in self.waiting_lines:
            line.let_in()

    def _turn_away(self, error: BaseException) -> None:
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

    Nobody is let in during an outage.

    Args:
        backbone: Its key.
        servers: All that are asked for the backbone.
        endpoint: How they are asked.

    Attributes:
        servers: As long as they are asked.
        pace: How long an attempt may take.
        watch: Whether any of them answers.
    """

    def __init__(self, backbone: str, servers: Sequence[Server], endpoint: Endpoint) -> None:
        self.servers = servers
        self.pace = Pace(endpoint.timeout_s)
        urls = ", ".join(server.url for server in servers)
        self._after = SILENT_AFTER * len(servers)
        self.watch = Watch(backbone, urls, self._after, self._probe, self.let_in, self.turn_away)
        self._has_answered = False
        self._locked_out = 0
        self._endpoint = endpoint
        self._to_probe: Request | None = None
        self._line: deque[tuple[asyncio.Future[Server], Server | None]] = deque()
        for server in servers:
            server.waiting_lines.append(self)

    @property
    def is_locked_out(self) -> bool:
        """Whether no call was ever answered here, and so many in a row were refused that it is no hiccup."""
        return not self._has_answered and self._locked_out >= self._after

    @property
    def waiting_each(self) -> int:
        """Calls that wait for a place, spread over the servers; in an outage they wait for something else."""
        return 0 if self.watch.is_out else -(-len(self._line) // len(self.servers))

    def answered(self, server: Server, request: Request) -> None:
        """Learn from a reply, while the request still counts as in flight."""
        server.answered()
        self._to_probe, self._has_answered = request, True
        self.watch.answered()

    def failed(self, server: Server, request: Request, kind: Kind, before: Trouble) -> Trouble:
        """Learn from an attempt without a reply; what it met.

        Args:
            server: Where it was made.
            request: What was asked.
            kind: Why it failed.
            before: The trouble there was when it began.
        """
        server.failed(kind)
        self._locked_out = self._locked_out + 1 if kind is Kind.LOCKED_OUT else 0
        if self._to_probe is None:
            self._to_probe = replace(request, messages=(Message("user", "Hello"),), response_format=None)
        if kind is Kind.LOCKED_OUT and not self._has_answered:
            # A key or a name that was never good is none to wait for.
            return Trouble()
        if kind.is_unanswered:
            return self.watch.unanswered(request.key, before)
        self.watch.answered()
        return Trouble()

    async def enter(self, avoid: Server | None = None) -> Server:
        """Wait for a place at the least loaded server, if possible another than ``avoid``.

        Raises:
            UserError: The limit that processes share cannot be worked with, or an outage lasts too long.
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
        while self._line and not self.watch.is_out and (server := self._best(self._line[0][1])) is not None:
            future, _ = self._line.popleft()
            if not future.done():
                server.begin()
                future.set_result(server)
        for server in self.servers:
            server.want()

    def turn_away(self, error: BaseException) -> None:
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

    async def _probe(self) -> AttemptError | None:
        """Ask all servers for one token; what one of them said instead, if none gave it."""
        if self._to_probe is None:
            raise AssertionError("a call has been answered, or has failed, before anybody wonders why")
        request = replace(self._to_probe, max_tokens=1)

        async def ask(server: Server) -> AttemptError | None:
            names = server.names.get(request.model, ())
            try:
                await attempt(server.client, request, self._endpoint, asyncio.timeout(_PROBE_S), names)
            except AttemptError as error:
                if error.kind.is_unanswered:
                    return error
            server.heard()
            return None

        errors = await gather(map(ask, self.servers))
        return None if None in errors else errors[0]

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
    return {key: Pool(key, [servers[url] for url in one.urls], one) for key, one in endpoints.items()}
