#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py [--budget SECONDS] REPORT.xml: sums up a run of ctest in one line.

Reads what `ctest --output-junit` wrote; prints the output of each failed test, then as last line
`N passed, M skipped (reason: count; ...), 0 failed`. Exits 1 when a test failed, or when none ran.
When the run took longer than the budget, prints its slowest tests too.
"""
import collections
import re
import sys
import xml.etree.ElementTree as xml

TAIL = 60  # lines of a failed test's output
SLOWEST = 8


def skip_reason(output):
    """What a test said: the text after GoogleTest's `file:line: Skipped`, or a line `SKIP: text` of a script."""
    said = re.search(r'^\S+:\d+: Skipped\n(.*?)(?=\n\n|\n\[|\Z)', output, re.S | re.M) or re.search(
        r'^SKIP: (.*)$', output, re.M)
    return ' '.join(said.group(1).split()) if said and said.group(1).strip() else 'no reason given'


def classify(case):
    output = case.findtext('system-out') or ''
    status = case.get('status')
    skipped = case.find('skipped')
    if status == 'run':
        return 'passed', output
    if status == 'disabled':
        return 'skipped', 'disabled'
    if status == 'notrun' and skipped is not None and 'MATCHED' in (skipped.get('message') or ''):
        return 'skipped', skip_reason(output)
    if status == 'notrun' and skipped is not None and 'RETURN_CODE' in (skipped.get('message') or ''):
        return 'skipped', skip_reason(output)
    return 'failed', output or (skipped.get('message') if skipped is not None else '')


def over_budget(root, budget):
    """The slowest tests of a run that took more than `budget` seconds; nothing where it did not, or has no time."""
    took = float(root.get('time') or 0)
    if budget is None or took <= budget:
        return []
    cases = sorted(root.iter('testcase'), key=lambda case: -float(case.get('time') or 0))[:SLOWEST]
    return [f'{took:.0f} s, more than {budget:.0f}: the machine is busy, or a test is slow. The slowest:'] + [
        f'  {float(case.get("time")):6.2f} s  {case.get("name")}' for case in cases]


def main(path, budget=None):
    passed, failed, skipped = 0, [], collections.Counter()
    root = xml.parse(path).getroot()
    for case in root.iter('testcase'):
        outcome, text = classify(case)
        if outcome == 'passed':
            passed += 1
        elif outcome == 'skipped':
            skipped[text] += 1
        else:
            failed.append((case.get('name'), text))
    for name, text in failed:
        print(f'--- {name}')
        print('\n'.join(text.splitlines()[-TAIL:]))
    for name, _ in failed:
        print(f'failed: {name}')
    for line in over_budget(root, budget):
        print(line)
    why = '; '.join(f'{reason}: {count}' for reason, count in skipped.most_common())
    print(f'{passed} passed, {sum(skipped.values())} skipped{f" ({why})" if why else ""}, {len(failed)} failed')
    return 0 if passed and not failed else 1


if __name__ == '__main__':
    words = sys.argv[1:]
    seconds = float(words[1]) if words[:1] == ['--budget'] else None
    sys.exit(main(words[-1], seconds))
