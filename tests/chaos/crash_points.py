"""The commits of this process, and at which of them it is killed."""

import itertools
import os
import signal


class Crash:
    """Counts the commits of this process and kills it at one of them."""

    counted = itertools.count(1)
    number = 0
    count_file = -1
    before = -1
    after = -1
    first_statement = ""
    """Commits count from the first one with this statement on, "" for all commits."""
    statement = ""
    is_executed = False
    is_stored = True
    signal = signal.SIGKILL

    @classmethod
    def note(cls, sql: str) -> None:
        """Note that a statement is executed which is not a commit."""
        cls.is_executed = cls.is_executed or sql == cls.statement
        if sql == cls.first_statement:
            cls.first_statement = ""

    @classmethod
    def before_commit(cls) -> None:
        if not cls.first_statement:
            cls.number = next(cls.counted)
        if cls.number == cls.before or (cls.is_executed and not cls.is_stored):
            os.kill(os.getpid(), cls.signal)

    @classmethod
    def after_commit(cls) -> None:
        os.pwrite(cls.count_file, b"%d" % cls.number, 0)
        if cls.number == cls.after or cls.is_executed:
            os.kill(os.getpid(), cls.signal)
