"""Says how each check came out, in the lines that README.md describes."""

import sys
import traceback


# Characters of a reason; drivers put whole values into their errors.
SAID_MAX = 400


class Different(Exception):
    """A client saw something else than what was committed."""


class NotHere(Exception):
    """The client cannot do this; the reason says why."""


class Report:
    """The checks of one program."""

    def __init__(self, out=sys.stdout):
        self.out = out
        self.failed = 0

    def check(self, name, does, *arguments):
        """Runs a check and says how it came out; returns what it gave, or None."""
        try:
            given = does(*arguments)
        except NotHere as reason:
            self.say("skipped", name, str(reason))
        except Different as difference:
            self.failed += 1
            self.say("failed", name, str(difference))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # Whatever a driver raises, a panic of Rust's too.
            traceback.print_exc()
            self.failed += 1
            self.say("failed", name, f"{type(error).__name__}: {error}")
        else:
            self.say("passed", name)
            return given
        return None

    def say(self, *parts):
        line = "\t".join(" ".join(part.split())[:SAID_MAX] for part in parts)
        print(line, file=self.out, flush=True)

    def end(self):
        """Says that every check was made; without it the program counts as failed."""
        print("end", file=self.out, flush=True)


def equal(found, expected, what):
    """Raises unless they are equal."""
    if found != expected:
        raise Different(f"{what}: {found!r} instead of {expected!r}")
