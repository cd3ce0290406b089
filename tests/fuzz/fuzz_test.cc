// SPDX-License-Identifier: Apache-2.0
// A small campaign: every target accepts its seeds, and accepts or refuses damaged copies of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/fuzz/targets.h"
#include "tests/testing/refusal.h"

namespace fusebox::fuzz {
namespace {

class Readers : public ::testing::TestWithParam<Target> {};

std::string Damaged(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  for (size_t i = 0, changes = 1 + below(4); i < changes && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size());
    switch (random() % 5) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes[at] = static_cast<char>("\x00\x7f\x80\xff"[below(4)]); break;
      case 2: bytes.resize(at); break;
      case 3: bytes.erase(at, 1 + below(16)); break;
      default: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64))); break;
    }
  }
  return bytes;
}

TEST_P(Readers, AcceptSeedsAndRefuseDamageWithAReason) {
  const Target& target = GetParam();
  const auto seeds = target.seeds();
  ASSERT_FALSE(seeds.empty());
  const auto run = [&](const std::string& bytes) { return target.run(std::as_bytes(std::span(bytes))); };
  std::mt19937_64 random(7);
  const auto odd = target.odd_seeds ? target.odd_seeds() : std::vector<std::string>();
  const size_t count = seeds.size() + odd.size();
  const size_t of_each =
      ((count < 100 ? 30 : 1) + 1000 / count) * (std::getenv("FUSEBOX_LONG_TESTS") ? 20 : 1);
  size_t refused = 0;
  const auto damage = [&](const std::string& seed) {
    for (size_t i = 0; i < of_each; ++i) {
      std::string copy = target.mutate && i % 2 == 0 ? target.mutate(seed, random) : "";
      if (copy.empty()) copy = Damaged(seed, random);
      const Status status = run(copy);
      EXPECT_TRUE(SucceedsOrBlamesInput(status)) << "copy " << i;
      refused += !status;
    }
  };
  for (size_t k = 0; k < seeds.size(); ++k) {
    SCOPED_TRACE("seed " + std::to_string(k));
    const Status whole = run(seeds[k]);
    EXPECT_TRUE(whole) << whole.error().message;
    damage(seeds[k]);
  }
  for (size_t k = 0; k < odd.size(); ++k) {
    SCOPED_TRACE("odd seed " + std::to_string(k));
    EXPECT_TRUE(SucceedsOrBlamesInput(run(odd[k])));
    damage(odd[k]);
  }
  EXPECT_GT(refused, seeds.size()) << "damage is not seen";
  const Status empty = run("");
  ASSERT_FALSE(empty);
  EXPECT_TRUE(BlamesInput(empty.error()));
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Readers, ::testing::ValuesIn(Targets().begin(), Targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::fuzz
