#include "train/members/terms.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::train {

namespace {

constexpr std::string_view kBetween = "; ";

using Fact = std::pair<std::string, std::string>;

std::vector<Fact> FactsOf(std::string_view line) {
  std::vector<Fact> out;
  while (!line.empty()) {
    const auto end = std::min(line.find(kBetween), line.size());
    const auto fact = line.substr(0, end);
    const auto space = std::min(fact.find(' '), fact.size());
    out.emplace_back(fact.substr(0, space), fact.substr(std::min(space + 1, fact.size())));
    line.remove_prefix(std::min(end + kBetween.size(), line.size()));
  }
  return out;
}

std::string ValueIn(const std::vector<Fact>& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Fact::first);
  return found == facts.end() ? "none" : found->second;
}

}  // namespace

std::string JoinTerms(std::string_view one, std::string_view other) {
  std::string out(one);
  if (!one.empty() && !other.empty()) out += kBetween;
  return out.append(other);
}

std::string DifferenceOf(std::string_view mine, std::string_view theirs) {
  const auto here = FactsOf(mine), there = FactsOf(theirs);
  std::string out;
  const auto add = [&](const std::string& name) {
    const auto value = ValueIn(here, name), other = ValueIn(there, name);
    if (value != other) out = JoinTerms(out, name + " " + value + ", not " + other);
  };
  for (const auto& fact : here) add(fact.first);
  for (const auto& fact : there) {
    if (std::ranges::find(here, fact.first, &Fact::first) == here.end()) add(fact.first);
  }
  // As of another version, or with a semicolon in a name.
  return out.empty() ? std::string(mine) + ", not " + std::string(theirs) : out;
}

}  // namespace muster::train
