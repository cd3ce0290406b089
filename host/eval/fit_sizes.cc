// SPDX-License-Identifier: Apache-2.0
#include "host/eval/fit_sizes.h"

#include <algorithm>
#include <bit>

namespace fusebox {
namespace {

constexpr int64_t kStep = 5040;                // divisible by what strides and blocks are
constexpr int64_t kHuge = kStep * 106'000;     // beyond any clamp, and still an i32
constexpr size_t kMostCoupled = 8;             // subsets are tried

using Row = std::vector<int64_t>;

class Fitter {
 public:
  Fitter(size_t symbols, Sampled what, const Sample& sample) : n_(symbols), what_(what), sample_(sample) {}

  std::vector<std::optional<Fit>> Run() {
    if (n_ > kMostSymbols || !Group() || !Slopes()) return {};
    Check();
    for (size_t k = 0; k < groups_.size(); ++k)
      if (std::popcount(groups_[k]) > 1) Separate(k);
    return std::move(fits_);
  }

 private:
  using Group_ = uint32_t;  // a bit for each symbol

  std::optional<Row> At(const Row& sizes) const { return sample_(sizes); }
  Row With(Group_ group, int64_t size, Row sizes) const {
    for (size_t i = 0; i < n_; ++i)
      if (group >> i & 1) sizes[i] = size;
    return sizes;
  }
  Row With(Group_ group, int64_t size) const { return With(group, size, base_); }

  // Symbols that only change together. Sizes that all differ show whether there are any.
  bool Group() {
    for (size_t i = 0; i < n_; ++i) base_.push_back(kStep * static_cast<int64_t>(2 * i + 1));
    if (auto row = At(base_)) {
      first_ = *std::move(row);
      for (size_t i = 0; i < n_; ++i) groups_.push_back(Group_{1} << i);
      return true;
    }
    base_.assign(n_, kStep);
    auto row = n_ > kMostCoupled ? std::nullopt : At(base_);
    if (!row) return false;
    first_ = *std::move(row);
    for (Group_ left = (Group_{1} << n_) - 1; left != 0; left &= ~groups_.back())
      if (!Smallest(left)) return false;
    return true;
  }
  bool Smallest(Group_ left) {
    const Group_ lowest = left & (~left + 1);
    for (int size = 1; size <= std::popcount(left); ++size) {
      for (Group_ group = left; group != 0; group = (group - 1) & left) {
        if (!(group & lowest) || std::popcount(group) != size || !At(With(group, 2 * kStep))) continue;
        groups_.push_back(group);
        return true;
      }
    }
    return false;
  }

  int64_t BaseOf(size_t group) const { return base_[static_cast<size_t>(std::countr_zero(groups_[group]))]; }

  bool Slopes() {
    fits_.resize(first_.size());
    of_group_.assign(first_.size(), groups_.size());
    for (size_t j = 0; j < first_.size(); ++j)
      if (first_[j] != kNoNumber) fits_[j] = Fit{{}, 0, first_[j]};
    for (size_t k = 0; k < groups_.size(); ++k) {
      const auto row = At(With(groups_[k], BaseOf(k) + kStep));
      if (!row || row->size() != first_.size()) return false;
      for (size_t j = 0; j < first_.size(); ++j) {
        if ((*row)[j] == first_[j] || !fits_[j]) continue;
        const int64_t rise = (*row)[j] == kNoNumber ? 1 : (*row)[j] - first_[j];
        if (rise % kStep != 0 || !fits_[j]->symbols.empty()) {
          fits_[j].reset();
          continue;
        }
        const int64_t factor = rise / kStep;
        fits_[j] = Fit{{static_cast<size_t>(std::countr_zero(groups_[k]))}, factor, first_[j] - factor * BaseOf(k)};
        of_group_[j] = k;
      }
    }
    return true;
  }

  // Other sizes: small ones, rising and falling ones, sizes that nothing divides, and one huge one at a time.
  void Check() {
    for (const int64_t all : {0, 1, 2, 3, 5, 12}) Compare([&](size_t) { return all; });
    Compare([&](size_t k) { return 97 + static_cast<int64_t>(k); });
    Compare([&](size_t k) { return 1013 - 2 * static_cast<int64_t>(k); });
    Compare([&](size_t k) { return BaseOf(k) + 1 + static_cast<int64_t>(k); });
    if (what_ == Sampled::kIntegers) Compare([&](size_t k) { return -3 - 2 * static_cast<int64_t>(k); });
    for (size_t huge = 0; huge < groups_.size(); ++huge) {
      const bool ran = Compare([&](size_t k) { return k == huge ? kHuge : BaseOf(k); }) ||
                       Compare([&](size_t k) { return k == huge ? kHuge : 12; });
      if (!ran) fits_.assign(fits_.size(), std::nullopt);
    }
    for (size_t j = 0; j < fits_.size(); ++j)
      if (fits_[j] && fits_[j]->symbols.empty() && what_ == Sampled::kIntegers) fits_[j].reset();
  }
  template <class SizeOf>
  bool Compare(const SizeOf& size_of) {
    Row sizes = base_;
    for (size_t k = 0; k < groups_.size(); ++k) sizes = With(groups_[k], size_of(k), std::move(sizes));
    const auto row = At(sizes);
    if (!row) return false;
    for (size_t j = 0; j < fits_.size(); ++j) {
      if (!fits_[j]) continue;
      const Fit& fit = *fits_[j];
      const int64_t wanted = fit.offset + (fit.symbols.empty() ? 0 : fit.factor * sizes[fit.symbols[0]]);
      const bool too_large = what_ == Sampled::kIntegers && (wanted > INT32_MAX || wanted < INT32_MIN);
      if (row->size() != fits_.size() || (!too_large && (*row)[j] != wanted)) fits_[j].reset();
    }
    return true;
  }

  // Which of the symbols that change together a number is: the one that it follows when that is 1; else one that cannot be 1 where the others
  // are not; else they are broadcast.
  void Separate(size_t k) {
    std::vector<size_t> members, rigid;
    for (size_t i = 0; i < n_; ++i)
      if (groups_[k] >> i & 1) members.push_back(i);
    std::vector<std::vector<size_t>> followed(fits_.size());
    for (const size_t i : members) {
      const auto row = At(With(Group_{1} << i, 1));
      if (!row) rigid.push_back(i);
      for (size_t j = 0; row && j < fits_.size(); ++j) {
        if (of_group_[j] != k || !fits_[j] || (row->size() == fits_.size() && (*row)[j] == first_[j])) continue;
        if (row->size() == fits_.size() && (*row)[j] == fits_[j]->factor + fits_[j]->offset) followed[j].push_back(i);
        else fits_[j].reset();
      }
    }
    for (size_t j = 0; j < fits_.size(); ++j) {
      if (of_group_[j] != k || !fits_[j]) continue;
      if (followed[j].size() > 1) fits_[j].reset();
      else if (!followed[j].empty()) fits_[j]->symbols = followed[j];
      else if (!rigid.empty()) fits_[j]->symbols = {rigid[0]};
      else fits_[j]->symbols = members;
    }
  }

  const size_t n_;
  const Sampled what_;
  const Sample& sample_;
  Row base_, first_;
  std::vector<Group_> groups_;
  std::vector<size_t> of_group_;  // by number; past the last: of none
  std::vector<std::optional<Fit>> fits_;
};

}  // namespace

std::vector<std::optional<Fit>> FitSizes(size_t symbols, Sampled what, const Sample& sample) {
  return Fitter(symbols, what, sample).Run();
}

}  // namespace fusebox
