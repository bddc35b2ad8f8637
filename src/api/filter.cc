#include "api/filter.h"

#include <algorithm>

namespace muster::api {
namespace {

using Op = Comparison::Op;

constexpr std::size_t kMostConditions = 16;

tl::unexpected<Error> Wrong(const std::string& what, const std::string& hint) {
  return tl::unexpected(Error{ErrorCode::kUsage, what, hint, "filter"});
}

Result<Comparison> Split(std::string_view text) {
  Comparison out;
  out.text = text;
  const auto at = text.find_first_of("=!~<>");
  const auto two = at == std::string_view::npos ? "" : text.substr(at, 2);
  const std::size_t size = two == "!=" || two == ">=" || two == "<=" ? 2 : 1;
  if (two.empty() || at == 0 || (two[0] == '!' && size == 1)) {
    return Wrong("\"" + out.text + "\" is no condition",
                 "write KEY=VALUE, or with != >= <= > < or ~ (contains); commas between");
  }
  out.key = text.substr(0, at);
  out.op = two == "!="     ? Op::kIsNot
           : two == ">="   ? Op::kAtLeast
           : two == "<="   ? Op::kAtMost
           : two[0] == '~' ? Op::kContains
           : two[0] == '>' ? Op::kAbove
           : two[0] == '<' ? Op::kBelow
                           : Op::kIs;
  out.value = text.substr(at + size);
  return out;
}

}  // namespace

bool Comparison::Meets(int order) const {
  switch (op) {
    case Op::kIs:
      return order == 0;
    case Op::kIsNot:
      return order != 0;
    case Op::kAtLeast:
      return order >= 0;
    case Op::kAtMost:
      return order <= 0;
    case Op::kAbove:
      return order > 0;
    case Op::kBelow:
      return order < 0;
    case Op::kContains:
      break;
  }
  return false;
}

Result<std::vector<Comparison>> SplitFilter(std::string_view text) {
  std::vector<Comparison> all;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    auto one = Split(text.substr(0, comma));
    if (!one) return tl::unexpected(one.error());
    all.push_back(std::move(*one));
    if (all.size() > kMostConditions) {
      return Wrong("there are more than " + std::to_string(kMostConditions) + " conditions",
                   "ask for more and look through the answer");
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return all;
}

tl::unexpected<Error> WrongFilter(const Comparison& comparison, const std::string& why,
                                  const std::string& hint) {
  return Wrong("\"" + comparison.text + "\": " + why, hint);
}

}  // namespace muster::api
