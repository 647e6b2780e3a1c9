"""The one request path: every model call of every method goes through :class:`ChatClient`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.concurrency import InFlight
from harness.llm.attempts import AttemptLog
from harness.llm.call_log import CallLog, CallLogReader
from harness.llm.completion import AttemptError, Kind, attempt
from harness.llm.endpoints import Endpoint
from harness.llm.outage import Trouble
from harness.llm.request import Reply, Request
from harness.llm.retries import MAX_ATTEMPTS, MAX_ATTEMPTS_IN_OUTAGES, delay_s
from harness.llm.served import Served, find_served
from harness.llm.servers import SILENT_AFTER, pools
from harness.llm.spending import Spending
from harness.llm.transport import ChatEndpoint, http_client
from harness.llm.unreachable import unreachable


@dataclass
class Counts:
    """Who answered: ``asked`` a server, the ``log`` of this cell, a call in ``flight``, a ``shared`` log."""

    asked: int = 0
    log: int = 0
    flight: int = 0
    shared: int = 0


class ChatClient:
    """Asks backbones, each distinct call once.

    Identical calls in flight share one request; a call that the log holds is not asked again; the log of another
    finished cell answers where it was declared. Failed attempts are repeated after a growing delay, at another server
    where there is one, and noted in the attempt log, never in the call log.

    Args:
        endpoints: Endpoint of each backbone key.
        log: The cell's call log.
        attempts: Where attempts, latencies and hosts go, outside the run's identity.
        shared: Logs of other finished cells, declared inputs of this one.
        in_process: What answers for endpoints of this process.
        slots: Folder in which the processes of a run share their limits; ``None`` where this is the only one.
        spending: The budget of the run; ``None`` where it has none.

    Raises:
        UserError: An API key is not set, the folder of the slots cannot be used, or the system does not allow so many
            connections.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        log: CallLog,
        attempts: AttemptLog,
        shared: Sequence[CallLogReader] = (),
        in_process: ChatEndpoint | None = None,
        slots: Path | None = None,
        spending: Spending | None = None,
    ) -> None:
        self.counts = Counts()
        self._endpoints = endpoints
        self._log = log
        self._attempts = attempts
        self._shared = shared
        self._spending = spending
        self._flight: InFlight[Reply] = InFlight()
        limits = {url: endpoint.max_in_flight for endpoint in endpoints.values() for url in endpoint.urls}
        self._http = http_client(in_process, sum(limits.values()))
        self._pools = pools(endpoints, self._http, slots)

    async def __aenter__(self) -> ChatClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._flight.close()
        for pool in self._pools.values():
            await pool.watch.close()
        if self._spending is not None:
            self._spending.close()
        for server in {server for pool in self._pools.values() for server in pool.servers}:
            server.close()
        await self._http.aclose()

    async def served(self, backbone: str, model: str) -> Served:
        """Ask the servers of a backbone what they serve, before the first paid call.

        Raises:
            UserError: None can be reached; one refuses the key, or does not serve this model; or they do not all
                report the same.
        """
        pool = self._pools[backbone]
        served, silent = await find_served(pool.servers, backbone, model, self._endpoints[backbone].served_name)
        pool.leave_out(silent)
        return served

    async def complete(self, backbone: str, request: Request) -> Reply:
        """The outcome of a call: from the log, from a call in flight, from the log of another cell, or from a server.

        Raises:
            UserError: The endpoint refuses the key or is down for long, or the budget is spent; nothing is recorded for
                this call then.
        """
        if (known := self._log.get(request.key)) is not None:
            self.counts.log += 1
            return known
        key = request.key.encode()
        self.counts.flight += key in self._flight
        return await self._flight.share(key, lambda: self._find(backbone, request))

    async def _find(self, backbone: str, request: Request) -> Reply:
        for other in self._shared:
            if (known := other.get(request.key)) is not None:
                self.counts.shared += 1
                await self._log.append(request, known, asked=False)
                return known
        return await self._ask(backbone, request)

    async def _ask(self, backbone: str, request: Request) -> Reply:
        if self._spending is None:
            return await self._asked(backbone, request)
        return await self._spending.pay(request, lambda: self._asked(backbone, request))

    async def _asked(self, backbone: str, request: Request) -> Reply:
        reply = await self._with_retries(backbone, request)
        self.counts.asked += 1
        await self._log.append(request, reply)
        return reply

    async def _with_retries(self, backbone: str, request: Request) -> Reply:
        pool, server = self._pools[backbone], None
        met: list[Trouble] = []
        while True:
            server = await pool.enter(avoid=server)
            before = pool.watch.trouble
            try:
                with self._attempts.measure(request.key, server.url, len(met) + 1):
                    names = server.names.get(request.model, ())
                    limit = pool.pace.limited(1 + _own(met))
                    reply = await attempt(server.client, request, self._endpoints[backbone], limit, names)
                pool.answered(server, request)
                return reply
            except AttemptError as error:
                met.append(pool.failed(server, request, error.kind, before))
                failed = error
            finally:
                # Before the delay: who waits for another attempt keeps nobody else from the server.
                server.end()
            # Of many calls that begin at once, a hiccup meets all.
            if failed.kind is Kind.LOCKED_OUT and pool.is_locked_out and len(met) >= SILENT_AFTER:
                raise unreachable(backbone, server.url, failed.__cause__ or failed)
            if failed.kind is Kind.REFUSED:
                break
            # It may be the only call left, and what it met an outage.
            if _own(met) >= MAX_ATTEMPTS and (not failed.kind.is_unanswered or await pool.watch.is_well()):
                break
            own = _own(met)
            if own >= MAX_ATTEMPTS_IN_OUTAGES:
                break
            # Up for a moment and down again, over and over: no fault of this call.
            if len(met) - own >= MAX_ATTEMPTS_IN_OUTAGES:
                raise unreachable(backbone, server.url, failed.__cause__ or failed)
            # In an outage it waits in line, and goes on as soon as that is over.
            if not pool.watch.is_out:
                await asyncio.sleep(delay_s(request.key, own, failed.retry_after_s))
        return Reply.failed(request.model, str(failed))


def _own(met: Sequence[Trouble]) -> int:
    """How many failed attempts count: those that did not end in an outage which other calls met as well."""
    return sum(not one.is_shared_outage for one in met)
