"""The order in which clients use the device."""

import threading
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hand_made import double_module
from serving import PATIENCE, GatedDevice, X, doubled, served, wait_until

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import PAGE
from vitral.runtime.remote.space import Space
from vitral.runtime.remote.turns import Turns
from vitral.runtime.session import Session

CLIENTS, REQUESTS = 8, 1000


@pytest.fixture
def turns() -> Iterator[Turns]:
    turns = Turns(10)
    yield turns
    assert not turns._queue


def test_turns_come_in_the_order_of_asking(turns: Turns) -> None:
    """One who keeps asking gets one turn between two of each other one."""
    order: list[str] = []

    def work(name: str, times: int) -> None:
        for _ in range(times):
            with turns.turn(PATIENCE, lambda: True):
                order.append(name)
                wait_until(lambda: len(turns._queue) >= 3 or len(order) >= 9)

    threads = [
        threading.Thread(target=work, args=(name, times))
        for name, times in (("greedy", 20), ("a", 3), ("b", 3))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    middle = order[:9]
    assert Counter(middle) == {"greedy": 3, "a": 3, "b": 3}
    assert all(len(set(middle[n : n + 3])) == 3 for n in range(7))


def test_turn_ends_with_an_error(turns: Turns) -> None:
    with pytest.raises(ZeroDivisionError):
        with turns.turn(PATIENCE, lambda: True):
            raise ZeroDivisionError
    with turns.turn(PATIENCE, lambda: True):
        pass


def test_turn_that_nobody_wants_any_more(turns: Turns) -> None:
    with pytest.raises(DeviceError, match="gone"):
        with turns.turn(PATIENCE, lambda: False):
            pytest.fail("it was taken")


def test_stop_refuses_who_waits_and_who_asks(turns: Turns) -> None:
    errors: list[str] = []

    def wait() -> None:
        with pytest.raises(DeviceError) as caught, turns.turn(PATIENCE, lambda: True):
            pytest.fail("it was given")
        errors.append(str(caught.value))

    with turns.turn(PATIENCE, lambda: True):
        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: len(turns._queue) == 2)
        turns.stop()
        thread.join()
    wait()
    assert errors == ["the server is being stopped"] * 2


def test_server_that_stops_answers_who_runs_and_refuses_who_waits() -> None:
    device = GatedDevice(CoreConfig())
    with served(device) as server:
        sessions = [Session(double_module(), server.address) for _ in range(2)]
        results: dict[int, str] = {}

        def work(number: int) -> None:
            try:
                sessions[number].run(None, {"x": X})
                results[number] = "ran"
            except DeviceError as error:
                results[number] = str(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        threads[0].start()
        wait_until(lambda: len(device.started) == 1)
        threads[1].start()
        wait_until(lambda: len(server._service.device.turns._queue) == 2)
        server.stop()
        threads[1].join()
        assert results.keys() == {1}
        assert "the server is being stopped" in results[1]
        device.gate.set()
        threads[0].join()
        assert results[0] == "ran"
        for session in sessions:
            session.close()


def test_space_is_given_by_the_page_where_it_first_fits() -> None:
    space = Space(10 * PAGE + 1)
    places = [space.take(nbytes) for nbytes in (PAGE, PAGE + 1, 1, 0)]
    assert places == [0, PAGE, 3 * PAGE, 4 * PAGE]
    space.give_back(PAGE)
    assert space.free_bytes == 7 * PAGE
    assert space.take(3 * PAGE) == 5 * PAGE
    assert space.take(2 * PAGE) == PAGE  # just fits
    with pytest.raises(DeviceError, match=r"needs 12288 bytes .* has 40960 of which 8192 are free"):
        space.take(3 * PAGE)


def test_many_requests_of_eight_clients() -> None:
    """Each gets its own results, all 1,000 of them."""
    right = Counter[int]()
    with served() as server:

        def work(client: int) -> None:
            random = np.random.default_rng(client)
            with Session(double_module(), server.address) as session:
                for _ in range(REQUESTS // CLIENTS):
                    x = random.integers(-128, 128, X.shape, np.int8)
                    right[client] += doubled(session, x)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert right == dict.fromkeys(range(CLIENTS), REQUESTS // CLIENTS)
