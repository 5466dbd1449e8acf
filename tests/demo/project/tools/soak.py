"""Takes its time, one line a beat: long enough for the daemon to be killed while it runs."""

import sys
import time

beats = int(sys.argv[1])
for beat in range(1, beats + 1):
    print(f"beat {beat} of {beats}", flush=True)
    time.sleep(0.1)
