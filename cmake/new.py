#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev new op|plugin|pass NAME: the files of a new part and its rows in the lists, ready to build.

What it makes refuses to work, with its reason, until it is written: a new op's kernel declines every node and its case
fails, a new plugin declines everything, a new pass changes nothing. NAME is snake_case, as the file will be called.
"""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

KERNEL = '''// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {{
namespace {{

struct {camel} {{
  static constexpr std::string_view builtin = "{upper}";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node&) {{ throw Reject{{"OP", "{upper} has no kernel yet", "node"}}; }}

  static void infer(const Node& n, Infer& out) {{ out.like(0, n.in(0)); }}

  void invoke(const Node&) const {{}}
}};

constexpr const fbx_kernel* kTable[] = {{&kernel_of<{camel}>}};

}}  // namespace

constinit const KernelTable k{camel}Kernels = kTable;

}}  // namespace fusebox::cpu
'''

CASES = '''// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {{
namespace {{

const Suite kSuite("{name}", [](Cases& c) {{
  c.push_back({{.name = "one element", .op = "{upper}", .operands = {{F32({{1}}, {{1}})}}, .results = {{F32({{1}}, {{1}})}}}});
}});

}}  // namespace
}}  // namespace fusebox::conformance
'''

PASS = '''// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/pass.h"

namespace fusebox::converter {{

Status {camel}(Context& context) {{
  context.Note("{dashed} changes nothing yet");
  return {{}};
}}

}}  // namespace fusebox::converter
'''


def write(path, text):
    file = ROOT / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, 'x', encoding='utf-8') as out:
        out.write(text)
    print(f'new      {path}')


def insert(path, pattern, text, after=False):
    """Puts text before the last (or after the first) match of the pattern."""
    file = ROOT / path
    content = file.read_text()
    matches = list(re.finditer(pattern, content, re.M))
    if not matches:
        sys.exit(f'new: {path}: no place for the row: {text.strip()}')
    at = matches[0].end() if after else matches[-1].start()
    file.write_text(content[:at] + text + content[at:])
    print(f'row in   {path}')


def new_op(name, words):
    words['upper'] = name.upper()
    write(f'plugins/cpu/kernels/{name}.cc', KERNEL.format(**words))
    write(f'tests/conformance/cases/{name}.cc', CASES.format(**words))
    print(f'Next: the kernel, its cases, then ninja -C build/dev test_conformance; is {name.upper()} in host/graph/ops.def?')


def new_plugin(name, _):
    source, target = ROOT / 'plugins/null', ROOT / 'plugins' / name
    shutil.copytree(source, target)
    for file in sorted(target.rglob('*')):
        if file.is_file():
            text = file.read_text()
            renamed = re.sub(r'(?<![A-Za-z0-9_])null(?![A-Za-z0-9_])', name, text)
            file.write_text(renamed)
            if 'null' in file.stem:
                file = file.rename(file.with_stem(file.stem.replace('null', name)))
            print(f'new      {file.relative_to(ROOT)}')
    print('Next: keep what you need of rule, kernel and delegate in it and in its manifest, and delete the rest.')


def new_pass(_, words):
    write('converter/passes/{name}.cc'.format(**words), PASS.format(**words))
    insert('converter/passes/passes.def', r'^FUSEBOX_PASS\("finish"',
           'FUSEBOX_PASS("{dashed}", {camel}, kConversion, "what it does, as an imperative")\n'.format(**words))
    print('Next: move the row to its place; convert --dump-after {dashed} shows what it does.'.format(**words))


def main(arguments):
    kinds = {'op': new_op, 'plugin': new_plugin, 'pass': new_pass}
    if len(arguments) != 2 or arguments[0] not in kinds or not re.fullmatch(r'[a-z][a-z0-9_]*', arguments[1]):
        sys.exit('usage: ./dev new op|plugin|pass NAME, NAME in snake_case')
    kind, name = arguments
    camel = ''.join(part.capitalize() for part in name.split('_'))
    try:
        kinds[kind](name, {'name': name, 'camel': camel, 'dashed': name.replace('_', '-')})
    except FileExistsError as error:
        sys.exit(f'new: {error.filename} is there already')


if __name__ == '__main__':
    main(sys.argv[1:])
