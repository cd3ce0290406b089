# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the package (PEP 517), with the libraries, plugins and programs of a build tree inside.

    python3 -m build --wheel --no-isolation python      # FUSEBOX_BUILD: the build tree; default: build/release

Nothing is downloaded. Libraries that are no part of every system are copied too, and found by $ORIGIN; the tag of the
wheel has the glibc that these files really need. Needs patchelf.
"""
import base64
import csv
import hashlib
import io
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Part of every system that a wheel of this tag may be installed on (PEP 600).
SYSTEM = re.compile(r'(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|resolv|util))\.so\.\d+')
COMPONENTS = ('host', 'convert', 'tools')


def _run(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def _elf_files(folder):
    for path in sorted(folder.rglob('*')):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b'\x7fELF':
            yield path


def _copy_needed(native):
    """Copies the libraries that the files need, and lets all files find them in native/lib."""
    for path in list(_elf_files(native)):
        for line in _run('ldd', path).splitlines():
            found = re.match(r'\s*(\S+) => (/\S+)', line)
            if 'not found' in line:
                raise SystemExit(f'{path}: {line.strip()}')
            if found and not SYSTEM.fullmatch(found[1]) and not (native / 'lib' / found[1]).exists():
                target = native / 'lib' / found[1]
                target.write_bytes(pathlib.Path(found[2]).read_bytes())
                target.chmod(0o755)
    for path in _elf_files(native):
        origin = os.path.relpath(native / 'lib', path.parent)
        _run('patchelf', '--set-rpath', '$ORIGIN' if origin == '.' else f'$ORIGIN/{origin}', path)


def _glibc(native):
    """The newest version of glibc's symbols that a file needs: (2, 36)."""
    versions = {(0, 0)}
    for path in _elf_files(native):
        versions |= {tuple(map(int, found)) for found in re.findall(r'GLIBC_(\d+)\.(\d+)', _run('objdump', '-T', path))}
    return max(versions)


def _install(build, native):
    for component in COMPONENTS:
        _run('cmake', '--install', build, '--prefix', native, '--component', component, '--strip')
    for path in native.rglob('*'):
        if path.is_symlink():  # a wheel has none: the library gets the name that programs look for
            if path.name.endswith('.so.0'):
                target = path.resolve()
                path.unlink()
                target.rename(path)
    for path in [path for path in native.rglob('*') if path.is_symlink()]:
        path.unlink()


def _metadata(version):
    return (f'Metadata-Version: 2.1\nName: fusebox\nVersion: {version}\n'
            'Summary: Converts, fuses, runs and compares .tflite models\nLicense: Apache-2.0\n'
            'Requires-Python: >=3.9\nRequires-Dist: numpy\nProvides-Extra: dask\n'
            'Requires-Dist: dask[array]; extra == "dask"\nRequires-Dist: distributed; extra == "dask"\n')


def _write(path, files):
    """A wheel of [(name, bytes, executable)], with its RECORD."""
    record = io.StringIO()
    rows = csv.writer(record, lineterminator='\n')
    info = files[-1][0].split('/')[0]
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as wheel:
        for name, data, executable in files:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if executable else 0o644) << 16
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            rows.writerow([name, f'sha256={digest}', len(data)])
        rows.writerow([f'{info}/RECORD', '', ''])
        wheel.writestr(f'{info}/RECORD', record.getvalue())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The PEP 517 hook; config_settings={"build": FOLDER} has the build tree, else FUSEBOX_BUILD."""
    build = (config_settings or {}).get('build') or os.environ.get('FUSEBOX_BUILD') or HERE.parent / 'build' / 'release'
    version = re.search(r'CMAKE_PROJECT_VERSION:STATIC=(\S+)', (pathlib.Path(build) / 'CMakeCache.txt').read_text())[1]
    with tempfile.TemporaryDirectory(prefix='fusebox-wheel-') as folder:
        native = pathlib.Path(folder, 'native')
        _install(build, native)
        _copy_needed(native)
        major, minor = _glibc(native)
        tag = f'py3-none-manylinux_{major}_{minor}_{platform.machine()}'
        files = [(str(path.relative_to(HERE)), path.read_bytes(), False)
                 for path in sorted((HERE / 'fusebox').rglob('*')) if path.suffix == '.py' or path.name == 'py.typed']
        files += [(f'fusebox/native/{path.relative_to(native)}', path.read_bytes(), os.access(path, os.X_OK))
                  for path in sorted(native.rglob('*')) if path.is_file() and 'share' not in path.parts]
    info = f'fusebox-{version}.dist-info'
    files += [(f'{info}/METADATA', _metadata(version).encode(), False),
              (f'{info}/WHEEL', f'Wheel-Version: 1.0\nGenerator: fusebox\nRoot-Is-Purelib: false\nTag: {tag}\n'.encode(),
               False)]
    name = f'fusebox-{version}-{tag}.whl'
    _write(os.path.join(wheel_directory, name), files)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit('the package has no source distribution: its libraries are built by CMake (./dev build release)')
