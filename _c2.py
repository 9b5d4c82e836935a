from collections import Counter
from tests.simulation.world import World
from tests.simulation.test_what_happens import kinds, MISHAPS, CONSEQUENCES
import sys
first={}
for seed in range(50,400):
    w=World(seed); v=w.run()
    if v is not None: print(seed, v)
    for k in set(kinds(w.trace)): first.setdefault(k,[]).append(seed)
for k in sorted(MISHAPS|CONSEQUENCES, key=lambda k:len(first.get(k,[])))[:12]: print(k, len(first.get(k,[])), first.get(k,[])[:5])
