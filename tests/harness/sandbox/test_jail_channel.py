"""Messages over a socket, whole or not at all."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.sandbox.jail import channel
from harness.sandbox.jail.channel import Channel, TooLongError

FUNCTION_SCOPED = [HealthCheck.function_scoped_fixture]


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    """A channel and the bare socket at the other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours.fileno()), theirs


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "little") + message


def test_what_is_sent_is_the_length_and_the_message(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    ours.send(b"")
    ours.send(b"abc" * 100)
    assert theirs.recv(1000) == b"\0\0\0\0\x2c\x01\0\0" + b"abc" * 100


@given(messages=st.lists(st.binary(max_size=300), max_size=6), cuts=st.lists(st.integers(1, 40), min_size=1))
@settings(max_examples=60, deadline=None, suppress_health_check=FUNCTION_SCOPED)
def test_messages_arrive_whole_however_they_are_cut(
    ends: tuple[Channel, socket.socket], messages: list[bytes], cuts: list[int]
) -> None:
    ours, theirs = ends
    stream = b"".join(map(framed, messages))
    pieces: list[bytes] = []
    while stream:
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(stream[:size])
        stream = stream[size:]
    # Only as much lies ready as the piece that is due: a read finds no more.
    genuine, due = ours._read, iter(pieces)

    def read(descriptor: int, length: int) -> bytes:
        theirs.sendall(next(due))
        return genuine(descriptor, length)

    ours._read = read
    assert [ours.receive() for _ in messages] == messages
    assert list(due) == []
    assert ours._pending == b""
    ours._read = genuine


def test_one_byte_at_a_time(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    sizes: list[int] = []
    genuine = ours._read

    def read(descriptor: int, length: int) -> bytes:
        sizes.append(length)
        return genuine(descriptor, 1)

    ours._read = read
    theirs.sendall(framed(b"hello") + framed(b"x"))
    assert [ours.receive(), ours.receive()] == [b"hello", b"x"]
    assert len(sizes) == 14


def test_a_message_larger_than_what_the_system_holds(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    message = bytes(range(256)) * (channel.LONGEST // 256)
    received: list[bytes] = []
    with socket.socket(fileno=theirs.detach()) as other:
        reader = threading.Thread(target=lambda: received.append(Channel(other.fileno()).receive()))
        reader.start()
        ours.send(message)
        reader.join()
    assert received == [message]


@pytest.mark.parametrize("sent", [b"", b"\x05", b"\x05\0\0", framed(b"hello")[:-1], framed(b"")[:3]])
def test_an_end_before_the_message_is_complete(ends: tuple[Channel, socket.socket], sent: bytes) -> None:
    ours, theirs = ends
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(EOFError):
        ours.receive()


def test_what_was_complete_before_the_end_still_arrives(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    theirs.sendall(framed(b"one") + framed(b""))
    theirs.close()
    assert [ours.receive(), ours.receive()] == [b"one", b""]
    with pytest.raises(EOFError):
        ours.receive()


def test_a_reset_connection_is_an_end(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    ours.send(b"unread")
    theirs.close()
    with pytest.raises(EOFError):
        ours.receive()


def test_sending_to_nobody(ends: tuple[Channel, socket.socket]) -> None:
    ours, theirs = ends
    theirs.close()
    with pytest.raises(BrokenPipeError):
        ours.send(b"x")


@pytest.mark.parametrize(
    ("length", "is_too_long"), [(channel.LONGEST, False), (channel.LONGEST + 1, True), ((1 << 32) - 1, True)]
)
def test_what_is_announced_as_too_long_is_not_waited_for(
    ends: tuple[Channel, socket.socket], length: int, is_too_long: bool
) -> None:
    ours, theirs = ends
    theirs.sendall(length.to_bytes(4, "little"))
    theirs.close()
    with pytest.raises(TooLongError if is_too_long else EOFError) as caught:
        ours.receive()
    assert not is_too_long or str(caught.value) == str(length)
