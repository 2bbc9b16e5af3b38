"""Signals: noted at once, acted upon at a check, insisted upon after a grace, never lost."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from reluflow import interrupts
from reluflow.interrupts import Interrupted, deferred

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers():
    """Python's own handlers, also where SIGINT is inherited as ignored; they must come back."""
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGALRM) == before[signal.SIGALRM]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    interrupts.check()
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def inside(work, **options):
    with deferred(**options) as pending:
        work(pending)


def interruption(work, **options):
    """Do ``work(pending)`` in a block that it does not survive; the exception that leaves it."""
    with pytest.raises(Interrupted) as caught:
        inside(work, **options)
    return caught.value


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_for_the_check(number):
    seen = []

    def work(pending):
        send(number)
        seen.append(pending.is_set)
        pending.check()
        seen.append("never")

    error = interruption(work)
    assert seen == [True]
    assert error.signal == number
    assert isinstance(error, KeyboardInterrupt)


def test_a_check_deep_inside_sees_the_signal_of_the_outermost_block():
    seen = []

    def deep(inner):
        seen.append(inner.signal)
        interrupts.check()

    def work(pending):
        send(signal.SIGTERM)
        inside(deep, grace=None)

    interruption(work)
    assert seen == [signal.SIGTERM]


def test_a_signal_that_nobody_looked_at_is_raised_at_the_end_of_the_outermost_block():
    seen = []

    def work(pending):
        inside(lambda inner: send())
        seen.append(pending.is_set)

    interruption(work)
    assert seen == [True]


def test_an_answered_signal_is_not_raised_again_but_seen_by_blocks_around():
    def answer(pending):
        send()
        pending.answer()

    def around(outer):
        inside(answer)
        assert not outer.is_answered
        outer.check()

    inside(answer)
    interruption(around)


@pytest.mark.parametrize("number", SIGNALS)
def test_work_that_never_asks_is_stopped_after_the_grace(number):
    timer = threading.Timer(0.05, send, (number,))
    timer.start()
    began = time.monotonic()
    assert interruption(lambda pending: time.sleep(30.0), grace=0.1).signal == number
    timer.join()
    assert time.monotonic() - began < 15.0


def test_code_that_swallows_everything_is_interrupted_again():
    swallowed = []

    def work(pending):
        send()
        while len(swallowed) < 3:
            try:
                time.sleep(30.0)
            except KeyboardInterrupt:
                swallowed.append(1)
        time.sleep(30.0)

    interruption(work, grace=0.02)


def test_a_block_without_grace_is_never_cut_in_two():
    done = []

    def write(pending):
        send()
        time.sleep(1.1 * interrupts.AGAIN_S)
        send()  # another one, of somebody impatient, waits too
        done.append(1)

    def work(pending):
        inside(write, grace=None)
        pending.check()

    interruption(work, grace=0.01)
    assert done == [1]


def test_a_second_signal_is_raised_at_once_and_one_sent_twice_is_not():
    reached = []

    def work(pending):
        send()
        send()
        reached.append("the same twice")
        time.sleep(1.1 * interrupts.AGAIN_S)
        send()
        reached.append("never")

    interruption(work, grace=30.0)
    assert reached == ["the same twice"]


def test_an_error_after_a_signal_is_the_signal():
    """Numba turns an exception of a handler into a SystemError of its own."""

    def work(pending):
        send()
        raise SystemError("returned a result with an exception set")

    assert isinstance(interruption(work).__cause__, SystemError)
    with pytest.raises(ValueError, match="no signal"), deferred():
        raise ValueError("no signal came")


def test_ignored_signals_stay_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred() as pending:
            send()
            assert not pending.is_set
    finally:
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_threads_see_what_the_main_thread_has_noted():
    seen = []

    def work():
        with deferred() as pending:
            seen.append(pending.is_set)
            try:
                pending.check()
            except Interrupted:
                seen.append("stopped")

    with deferred() as outer:
        for sent in (False, True):
            if sent:
                send()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        outer.answer()
    assert seen == [False, True, "stopped"]


COMPILED = """
import random, signal, sys, threading, time, os
import numpy as np
from reluflow.interrupts import Interrupted, deferred
from reluflow.engines import descend
import reluflow as rf

signal.signal(signal.SIGINT, signal.default_int_handler)
data = rf.datasets.centred(3, seed=0)
net = rf.networks.balanced(3, 8, seed=0)
rf.descend(data, net, lr=1e-3, steps=10)
generator, slowest, ends = random.Random(int(sys.argv[1])), 0.0, {}
for k in range(int(sys.argv[2])):
    number = generator.choice((signal.SIGINT, signal.SIGTERM))
    sent = []
    def send():
        sent.append(time.process_time())  # not the clock: others may use the processor
        os.kill(os.getpid(), number)
    timer = threading.Timer(generator.uniform(0.0, 0.05), send)
    try:
        with deferred() as pending:
            timer.start()
            while True:
                rf.descend(data, net, lr=1e-6, steps=generator.choice((100, 10_000)), record=2)
                pending.check()
    except BaseException as error:
        ends[type(error).__name__] = ends.get(type(error).__name__, 0) + 1
    slowest = max(slowest, time.process_time() - sent[0])
    timer.join()
print(ends, slowest)
"""


def compiled(seed, count):
    """Interrupt compiled work at random moments; how it ended, and the slowest end."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILED, str(seed), str(count)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    ends, _, slowest = done.stdout.rpartition(" ")
    return ends, float(slowest)


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=pytest.mark.long)])
def test_signals_at_random_moments_of_compiled_work_all_interrupt_it(count):
    ends, slowest = compiled(count, count)
    assert ends == str({"Interrupted": count})
    assert slowest < 2.0


NAMED = """
import subprocess, sys, time
from typing import NamedTuple
import numba
from reluflow.interrupts import Interrupted, deferred

class Found(NamedTuple):
    value: float

@numba.njit
def busy(count):
    value = 1.0
    for k in range(count):
        value = 1.0 / (1.0 + value)
    return Found(value)

busy(1)
begun = time.process_time()
busy(10_000_000)
count = int(10_000_000 * 0.5 / (time.process_time() - begun))  # about half a second
for k in range(3):
    process = subprocess.Popen(["sh", "-c", "sleep 0.1; kill -TERM $PPID"])
    try:
        with deferred(grace=0.01):
            for calls in range(100):
                busy(count)
                busy(count)
                time.sleep(0.02)
    except Interrupted:
        print("interrupted")
    process.wait()
"""


def test_a_signal_while_compiled_code_makes_a_named_tuple_is_raised_after_it():
    """numba does not look whether the maker of the tuple failed, and reads what is not there."""
    done = subprocess.run(
        [sys.executable, "-c", NAMED], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.split()) == (0, ["interrupted"] * 3), done.stderr


LINKED = """
import gc, os, signal, sys, time
import llvmlite.binding as llvm
from llvmlite.binding import ffi
from reluflow.interrupts import Interrupted, deferred

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
module, other = (llvm.parse_assembly("define i32 @%s() {\\n ret i32 1\\n}" % name) for name in "fg")
machine = llvm.Target.from_default_triple().create_target_machine()
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
name, hand_over = {
    "link": ("LLVMPY_LinkModules", lambda: module.link_in(other)),
    "add": ("LLVMPY_AddModule", lambda: engine.add_module(other)),
}[sys.argv[1]]
compiled = getattr(ffi.lib, name)

def slow(*arguments):
    answer = compiled(*arguments)
    time.sleep(0.05)  # the grace is over while LLVM works
    return answer

ffi.lib._fntab[name] = slow
try:
    with deferred(grace=0.01):
        os.kill(os.getpid(), signal.SIGTERM)
        hand_over()
        time.sleep(30.0)
except Interrupted:
    print("interrupted")
del module, other
gc.collect()
engine.close()
"""


@pytest.mark.parametrize("way", ["link", "add"])
def test_a_signal_while_llvm_takes_over_a_module_is_raised_after_it(way):
    """The module would be freed twice: a segmentation fault, in the middle of compiling."""
    done = subprocess.run(
        [sys.executable, "-c", LINKED, way], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_a_signal_while_a_block_is_left_does_not_stay_for_ever():
    """Its handlers and its timer would outlive it, and raise wherever the program then is."""

    def insist(frame, event, _):
        if event == "call" and frame.f_code is interrupts._leave.__code__:
            sys.setprofile(None)
            time.sleep(1.1 * interrupts.AGAIN_S)
            send()

    def work(pending):
        send()
        sys.setprofile(insist)

    try:
        interruption(work, grace=30.0)
    finally:
        sys.setprofile(None)
    assert interrupts._graces == []
