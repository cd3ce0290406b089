// SPDX-License-Identifier: Apache-2.0
// SKIP_GRAM: n-grams of the words of one string, with at most max_skip_size words left out between two words.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

constexpr std::string_view kSpaces = " \t\n\v\f\r";
constexpr size_t kMostGramBytes = INT32_MAX;  // of a string tensor

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t end = 0;;) {
    const size_t begin = text.find_first_not_of(kSpaces, end);
    if (begin == text.npos) return words;
    end = std::min(text.find_first_of(kSpaces, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
}

// Strings one after the other, and where each ends.
struct Grams {
  std::string text;
  std::vector<size_t> ends;

  void Add(const std::vector<std::string_view>& words, const std::vector<size_t>& chosen) {
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (i > 0) text += ' ';
      text += words[chosen[i]];
    }
    ends.push_back(text.size());
    if (text.size() + 4 * ends.size() > kMostGramBytes) Fail("its n-grams take more than 2^31 bytes");
  }
  std::string_view operator[](size_t k) const {
    const size_t begin = k == 0 ? 0 : ends[k - 1];
    return std::string_view(text).substr(begin, ends[k] - begin);
  }
};

struct SkipGram {
  static constexpr std::string_view builtin = "SKIP_GRAM";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    if (n.in_count() > 0 && n.in(0).dtype() != FBX_STRING) RejectDtype(n.in(0).dtype(), 0);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    if (n.in(0).is_static() && n.in(0).count() != 1)
      Fail("has " + std::to_string(n.in(0).count()) + " strings, expected one", Operand(0));
    const Attrs attrs = n.attrs();
    if (attrs.i64("ngram_size", 0) < 1) Fail("is less than 1", "attr ngram_size");
    if (attrs.i64("max_skip_size", 0) < 0) Fail("is negative", "attr max_skip_size");
    out.set(0, FBX_STRING, {-1});
  }

  explicit SkipGram(const Node& n)
      : size_(static_cast<size_t>(n.attrs().i64("ngram_size", 0))),
        skip_(static_cast<size_t>(n.attrs().i64("max_skip_size", 0))),
        all_(n.attrs().b("include_all_ngrams", false)) {}

  void invoke(const Node& n) const {
    const Grams grams = Make(n, WordsOf(Strings(n.in(0))[0]));
    const auto count = static_cast<int64_t>(grams.ends.size());
    StoreStrings(n, 0, {{count}}, [&](int64_t k) { return grams[static_cast<size_t>(k)]; });
  }

 private:
  // In the order of a depth-first walk. A shorter n-gram (include_all_ngrams) comes after those that it
  // begins, and there is none in a text of fewer words than ngram_size: as in stock TFLite.
  Grams Make(const Node& n, const std::vector<std::string_view>& words) const {
    Grams grams;
    if (words.size() < size_) return grams;
    std::vector<size_t> chosen;
    for (size_t next = 0;;) {
      // A complete n-gram needs this many words: what cannot become one is no reason to walk on.
      const size_t end = all_ ? words.size() : words.size() - (size_ - chosen.size()) + 1;
      const size_t limit = chosen.empty() ? end : std::min(end, chosen.back() + skip_ + 2);
      if (chosen.size() < size_ && next < limit) {
        chosen.push_back(next++);
        continue;
      }
      if (chosen.empty()) return grams;
      if (n.cancelled()) throw Error{FBX_CANCELLED, "the run was cancelled"};
      if (all_ || chosen.size() == size_) grams.Add(words, chosen);
      next = chosen.back() + 1;
      chosen.pop_back();
    }
  }

  size_t size_, skip_;
  bool all_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<SkipGram>};

}  // namespace

constinit const KernelTable kSkipGramKernels = kTable;

}  // namespace fusebox::cpu
