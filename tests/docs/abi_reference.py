# SPDX-License-Identifier: Apache-2.0
"""Writes docs/abi-reference.md from the headers of the plugin ABI."""
import re

from abi_headers import Unreadable, read_header
from markdown import anchor, blocks, inline, sentence, table

ORDER = ['base', 'tensor', 'attrs', 'host', 'kernel', 'rule', 'delegate', 'plugin']
CALLED_BY_HOST = {'fbx_rule', 'fbx_kernel', 'fbx_delegate', 'fbx_entry'}
PLUMBING = {'FBX_EXPORT', 'FBX_EXTERN_C_BEGIN', 'FBX_EXTERN_C_END', 'FBX_BUILD_FLAGS'}

INTRODUCTION = '''# Plugin ABI reference

All structs, functions and constants of `sdk/include/fusebox/abi`, plugin ABI {version}. [plugin.md](plugin.md) is the introduction, and [versioning.md](versioning.md) states what stays compatible.
This page is generated: edit the comments of the headers, then run `./dev references`.

**Threads** states when a function may be called: `load` while a plugin or a model is loaded, `convert` while rules run, `prepare` while a session is planned, `invoke` while it runs, `any` at any time.
[base.h](#abibaseh) has the rules. **Since** is the minor version of the ABI that added a
member; tables without this column have members of 1.0 only.
'''


def title(declaration):
    return declaration.name.removesuffix(' ...') + (' and others' if declaration.name.endswith(' ...') else '')


def members_table(declaration, links):
    members = [one for one in declaration.members if not one.function and one.name != 'head']
    newer = any(one.comment.since != '1.0' for one in members)
    rows = []
    for one in members:
        code = one.code if declaration.kind == 'struct' else f'{one.name} = {one.code}'
        rows.append((f'`{code}`', one.comment.since if newer else '', inline(' '.join(one.comment.text), links)))
    if not any(row[1] or row[2] for row in rows):
        return '\n' + ', '.join(row[0] for row in rows) + '\n' if rows else ''
    return table(('member' if declaration.kind == 'struct' else 'value', 'since', 'meaning'), rows)


def signature(code):
    """The pointer member as a function, one parameter per line if it is long."""
    text = re.sub(r'\(\*(\w+)\)\(', r'\1(', code, count=1) + ';'
    if len(text) <= 110:
        return text
    name, arguments = text.split('(', 1)
    return name + '(\n    ' + re.sub(r', (?![^(]*\))', ',\n    ', arguments[:-2]) + ');'


def facts(declaration, member, header):
    comment = member.comment
    threads = comment.threads or declaration.comment.threads or header.comment.threads
    out = [f'Threads: {", ".join(threads)}.'] if threads else []
    if declaration.name in CALLED_BY_HOST and member.code.startswith('fbx_status') and not comment.errors:
        out.append('Errors: [status codes](plugin-errors.md#status-codes).')
    return ' '.join([*out, f'Since {comment.since}.'])


def function_groups(declaration, header):
    """The functions; those without a comment that follow each other, with the same facts, are one entry."""
    groups = []
    for member in declaration.members:
        bare = not (member.comment.text or member.comment.errors)
        key = facts(declaration, member, header)
        if not member.function:
            continue
        if groups and bare and groups[-1][0] == (True, key):
            groups[-1][1].append(member)
        else:
            groups.append(((bare, key), [member]))
    return [members for _, members in groups]


def function_entry(declaration, members, header, links):
    comment, names = members[0].comment, ', '.join(one.name for one in members)
    code = '\n'.join(signature(one.code) for one in members)
    text = f'\n#### {declaration.name}.{names}\n\n```c\n{code}\n```\n'
    if comment.text:
        text += '\n' + inline(sentence(' '.join(comment.text)), links) + '\n'
    if comment.errors:
        text += '\n' + ''.join(f'- `{status}`: {inline(when, links)}\n' for status, when in comment.errors)
    return text + f'\n{facts(declaration, members[0], header)}\n'


def entry(declaration, header, links):
    links = {name: target for name, target in links.items() if name != declaration.name}
    about = declaration.comment.text
    text = f'\n### {title(declaration)}\n' + blocks([sentence(about[0])] if len(about) == 1 else about, links)
    if declaration.kind == 'macro':  # the body of a function-like macro matters less than its comment
        body = '' if about and '(' in declaration.name else ' ' + declaration.code
        return text + f'\n```c\n#define {declaration.name}{body}\n```\n'
    if declaration.kind in ('type', 'object'):
        code = declaration.code if declaration.kind == 'object' else f'typedef {declaration.code}'
        return text + f'\n```c\n{code};\n```\n'
    text += members_table(declaration, links)
    return text + ''.join(function_entry(declaration, members, header, links) for members in function_groups(declaration, header))


def check_since(headers, version):
    """Members are added at the end, so their versions never fall, and none is of a version to come."""
    def numbers(text):
        return [int(part) for part in text.split('.')]
    for header in headers:
        for declaration in header.declarations:
            versions = [numbers(member.comment.since) for member in declaration.members]
            if declaration.kind == 'struct' and versions != sorted(versions):
                raise Unreadable(f'{header.name}: {declaration.name}: a member is older than the one before it; "Since 1.N." is missing')
            if versions and max(versions) > numbers(version):
                raise Unreadable(f'{header.name}: {declaration.name}: a member is newer than ABI {version}')


def write_page(source):
    """The text of docs/abi-reference.md."""
    root = source / 'sdk/include/fusebox'
    paths = [root / 'abi' / f'{name}.h' for name in ORDER] + sorted((root / 'abi/ext').glob('*.h'))
    missing = set((root / 'abi').rglob('*.h')) - set(paths)
    if missing:
        raise Unreadable(f'{missing.pop()}: add it to ORDER in abi_reference.py')
    headers = [read_header(path, root) for path in paths]
    numbers = {one.name: one.code for one in headers[0].declarations if one.kind == 'macro'}
    version = f'{numbers["FBX_ABI_MAJOR"]}.{numbers["FBX_ABI_MINOR"]}'
    check_since(headers, version)
    shown = [(header, [one for one in header.declarations if one.name not in PLUMBING]) for header in headers]
    links = {one.name: anchor(title(one)) for _, declarations in shown for one in declarations}
    text = INTRODUCTION.format(version=version) + '\n'
    for header, declarations in shown:
        names = ', '.join(f'[{title(one)}](#{anchor(title(one))})' for one in declarations)
        text += f'- [{header.name}](#{anchor(header.name)}): {names}\n'
    for header, declarations in shown:
        text += f'\n## {header.name}\n' + blocks(header.comment.text, links)
        text += ''.join(entry(one, header, links) for one in declarations)
    return text
