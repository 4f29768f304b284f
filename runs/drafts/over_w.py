"""Run given parts of an experiment, as `run --resume` would: over_w.py EXPERIMENT [PARTS...]"""
import sys, time
from pathlib import Path
from widebnn.experiments import find
from widebnn.study._sweep import place
from widebnn.study.results import config_hash, load_or_run
e = find(sys.argv[1]); c = e.config("laptop")
folder = Path("runs") / f"{e.name}_laptop-{config_hash(c)[:12]}.parts"
folder.mkdir(parents=True, exist_ok=True)
def watched(part):
    for row in e(part):
        print(time.strftime("%H:%M:%S"), {k: v for k, v in row.items() if isinstance(v, (int, float, str))}, flush=True)
        yield row
for i, p in enumerate(e.parts(c)):
    path = place(folder, p)
    if len(sys.argv) == 2: print(i, path.exists(), path.name)
    elif str(i) in sys.argv[2:]:
        print(time.strftime("%H:%M:%S"), "part", i, path.name, flush=True)
        load_or_run(path, p, watched)
