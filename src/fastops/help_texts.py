"""What `fastops --help` says: of the whole, by the name "", and of each command."""

from __future__ import annotations

CODES = """exit codes:
  0    all is well: the results are equal, everything was compiled
  1    a result differs, or something cannot be compiled
  2    wrong usage, or what was asked for is not installed
  130  interrupted
  141  whoever reads the output has gone"""
EXAMPLES = {
    "": """
  {prog}                       the jobs; the first run also compiles, which takes some seconds
  {prog} --size 0.05           the same on a twentieth of the data
  {prog} info                  what to quote when you report a problem
  {prog} COMMAND --help        more on a command""",
    "jobs": """
  {prog} jobs                  the same as {prog}
  {prog} jobs --size 0.05      on a twentieth of the data
  {prog} jobs --json           for programs""",
    "info": """
  {prog} info                  for people
  {prog} info --json           for programs""",
    "warmup": """
  {prog} warmup                compile for all twelve dtypes
  {prog} warmup float32 int64  compile for these""",
    "run": """
  {prog} run script.py -x 3    run a script; what follows its name is its own
  {prog} run -m module -x 3    run a module, as python -m does""",
    "bench": """
  {prog} bench                                int32, int64, float32 and float64
  {prog} bench uint8 --sizes 1000,1000000     that dtype, in arrays of a thousand and of a million elements
  {prog} bench --plot speed.png               with a chart, by matplotlib""",
    "explain": """
  {prog} explain mod 'float32[1000,1000]' float32                 by a scalar
  {prog} explain mod 'float32[1000,1000].T' 'float32[1000,1000]'  transposed
  {prog} explain fmod 'int64[200000][::2]' 7 --out x1             every second element, in place
  {prog} explain scatter_div 'float32[10000,128]' 'int64[100000]' 'float32[100000,128]'

An operand is a dtype and a shape, then slices and .T as NumPy has them; a dtype alone is a scalar of it, a number one of Python.
The output is written in the same way, or x1 or x2. (The quotation marks keep shells from taking brackets for a pattern.)
Work is counted as that of one core whose cache holds the operands. What calls take, and gain beside NumPy's, {prog} bench measures.""",
}
SAYS = {
    "": "Fast remainders and ordered scatter-division of arrays. Without a command: the jobs.",
    "jobs": "Do a few jobs that people have, by NumPy and by fastops, compare the results bit for bit, and show the times.",
    "info": "Show versions, processor, threads, and which compiled code is kept where.",
    "warmup": "Compile all that fastops runs, or load it from the cache, so that no later process has to compile.",
    "run": "Run an unchanged program with NumPy patched: its %, numpy.remainder and numpy.fmod run fastops' loops, in every library.\n"
    "The exit code is the program's own, or Python's (2: no such file, 1: no such module); 1, too, if NumPy cannot be patched.",
    "bench": "Compare fastops with NumPy on this machine, on one thread and on all, in less than a minute, and the results bit for bit.",
    "explain": "Say which way a call takes, on how many threads, and why. Nothing is computed, and no memory is filled.\n"
    "What arrays contain is not looked at: the call itself may raise for it, as for an index in them that is too large.",
}
