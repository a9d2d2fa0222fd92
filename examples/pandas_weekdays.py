"""A pandas program with `%` on long columns, run as it stands and then in `with fastops.patched():`.

    python examples/pandas_weekdays.py
    python examples/pandas_weekdays.py --rows 1000000

Trips of a bicycle hire: when in the week they begin, in which bin of the day, which way the bicycle turned, and to which shard they go.
It needs pandas.
"""

import argparse
import time

import numpy as np
import pandas as pd

import fastops

DAY = 86_400


def trips(rows):
    """Made-up ones, of the years around 1970."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "start": rng.integers(-5 * 365 * DAY, 50 * 365 * DAY, rows),  # seconds since 1970-01-01, a Thursday
            "minutes": rng.exponential(20, rows).astype(np.float32),
            "turn": rng.normal(0, 500, rows),  # degrees, as the sensor has counted them
            "bicycle": rng.integers(0, 2**32, rows, np.uint32),
        }
    )


def summary(trips):
    """The program: nothing in it knows of fastops."""
    day = trips["start"] // DAY
    trips = trips.assign(
        weekday=(day + 3) % 7,  # Monday is 0
        quarter=trips["start"] % DAY // 900,
        beyond=trips["minutes"] % 30,
        heading=trips["turn"] % 360,
        shard=trips["bicycle"] % np.uint32(97),
    )
    return trips, trips.groupby("weekday")[["beyond", "heading"]].sum()


def timed(call, *args):
    start = time.perf_counter()
    result = call(*args)
    return result, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="number of trips (5000000)")
    data = trips(parser.parse_args().rows)
    plain, plainly = timed(summary, data)
    with fastops.patched():
        summary(data)  # compiles, or loads what an earlier run has compiled
        fast, patched = timed(summary, data)
    for want, got in zip(plain, fast, strict=True):
        pd.testing.assert_frame_equal(got, want, check_exact=True)
        assert all(got[name].to_numpy().tobytes() == want[name].to_numpy().tobytes() for name in want)
    print(fast[1])
    print(f"as it stands {1e3 * plainly:8.1f} ms   patched {1e3 * patched:8.1f} ms")
    print("OK")


if __name__ == "__main__":
    main()
