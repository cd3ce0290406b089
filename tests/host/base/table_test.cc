// SPDX-License-Identifier: Apache-2.0
#include "host/base/table.h"

#include <gtest/gtest.h>

#include "host/base/table_style.h"

namespace fusebox {
namespace {

std::string TextWithin(size_t width) {
  Table table({"node", "reason", "us"});
  table.Row({"dense", "the operands differ in size, in type and in rank", "12.5"});
  table.Row({"lstm", "naïve", "3"});
  LimitTables(width);
  std::string text = table.Text("  ");
  LimitTables(0);
  return text;
}

TEST(Table, AlignsColumns) {
  EXPECT_EQ(TextWithin(0),
            "  node  | reason                                           |   us\n"
            "  ------+--------------------------------------------------+-----\n"
            "  dense | the operands differ in size, in type and in rank | 12.5\n"
            "  lstm  | naïve                                            |    3\n");
}

TEST(Table, WrapsCellsAtTheLimit) {
  EXPECT_EQ(TextWithin(36),
            "  node  | reason              |   us\n"
            "  ------+---------------------+-----\n"
            "  dense | the operands differ | 12.5\n"
            "        | in size, in type    |\n"
            "        | and in rank         |\n"
            "  lstm  | naïve               |    3\n");
}

TEST(Table, KeepsColumnsThatCannotShrink) {
  const std::string text = TextWithin(5);
  EXPECT_EQ(text.substr(0, text.find('\n')), "  node  | reason       |   us");
}

TEST(Table, CutsLongWordsBetweenCharacters) {
  Table table({"name"});
  table.Row({"äöüäöüäöüäöüäöü"});
  LimitTables(12);
  EXPECT_EQ(table.Text(), "name\n------------\näöüäöüäöüäöü\näöü\n");
  LimitTables(0);
}

}  // namespace
}  // namespace fusebox
