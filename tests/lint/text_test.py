#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of text.py: breaches are named with their lines, and text that keeps the rules is not."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import text  # noqa: E402

KEPT = '''// Holds a pair.
struct Pair : Base<int, 2>, Other {
  Pair(int a, int b) : a_{a}, b_(b) {}
  int a_, b_;
  std::map<std::string, std::vector<int>> all = {{"a, b", {1, 2}}};
};
enum class Kind { kOne = 1, kTwo };
template <class T, int n = 2>
void F(const T& t, int n = 1) {
  for (int i = 0, j = n; i < j; ++i, --j) Call(i, j);
  const auto less = [&](int a, int b) { return a < b; };
  if (const int k = less(1, 2); k > 0) return Call(k, n);
  switch (n) {
    case Kind::kOne: G(1, 2); break;
    default: std::array<int, 2> x = {1, 2};
  }
}
using a::B, a::C;
'''


class Statements(unittest.TestCase):
    def found(self, code, name='host/a.cc'):
        return [breach.split(': ')[0] for breach in text.check(name, code)]

    def test_what_keeps_the_rules(self):
        self.assertEqual(self.found(KEPT), [])

    def test_declarations(self):
        for line in ('const int64_t a = x, b = y;', 'std::vector<int> all(3), some;', 'int low, high = 3;',
                     'static constexpr auto a = F<int, 2>(), b = 1;', 'const char *a = x, *b = y;', 'T a{1}, b;',
                     'case 1: int a = 2, b = 3;', 'F([&] { int a = 1, b = 2; });'):
            self.assertEqual(self.found('void F() {\n  G();\n}\n\nvoid H() {\n  ' + line + '\n}\n'), ['host/a.cc:6'], line)

    def test_comma_operators(self):
        for line in ('a = 1, b = 2;', 'return a = 1, b;', 'if (a) b = 1, c = 2;', 'else ++a, b += 2;', '(void)a, (void)b;',
                     'for (;;) a(1), b(2);', 'F([&] { return a(), b; });', 'return *a = 1, true;'):
            self.assertEqual(self.found('void F() {}\n\nvoid H() {\n  ' + line + '\n}\n'), ['host/a.cc:4'], line)

    def test_comments(self):
        self.assertEqual(self.found('// Whether it is.\nint a;\n// Its size, of its own.\n'), ['host/a.cc:1', 'host/a.cc:3'])

    def test_only_the_product_is_read(self):
        self.assertEqual(self.found('int a = 1, b = 2;', 'tests/a.cc'), [])
        self.assertEqual(self.found('int a = 1, b = 2;', 'sdk/a.c.in'), ['sdk/a.c.in:1'])



if __name__ == '__main__':
    unittest.main()
