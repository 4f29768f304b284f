"""Run chapters, as many at a time as there are cores, into the cache that the book is built from.

A chapter that fails is left out, so that the build runs it again and reports what went wrong.

python book/execute.py _build/.jupyter_cache book/*.ipynb
"""

import sys

from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor


def main() -> None:
    folder, *chapters = sys.argv[1:]
    cache = get_cache(folder)
    for chapter in chapters:
        cache.add_nb_to_project(chapter)
    load_executor("local-parallel", cache).run_and_cache(timeout=600)


if __name__ == "__main__":
    main()
