#include "model/problems.h"

#include <algorithm>
#include <utility>

#include "model/utf8.h"

namespace muster::model {
namespace {

constexpr std::size_t kQuotedBytes = 60;
constexpr std::size_t kNearestBytes = 40;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Edits between two short texts, a swap of neighbours counted as one, case ignored.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string At(const Problem& problem) {
  return "line " + std::to_string(problem.mark.line) + ", column " +
         std::to_string(problem.mark.column) + ": " + problem.message;
}

std::string Hint(const Problem& problem) {
  return problem.allowed.empty() ? "" : "allowed: " + problem.allowed;
}

}  // namespace

void Problems::Add(Problem problem) {
  if (problem.severity == Severity::kError) ++errors_;
  if (Full()) {
    ++left_off_;
    return;
  }
  // An alias shows the same place several times; the reader needs it once.
  if (std::find(items_.begin(), items_.end(), problem) == items_.end()) {
    items_.push_back(std::move(problem));
  }
}

void Problems::Error(Mark mark, std::string message, std::string allowed) {
  Add({mark, Severity::kError, std::move(message), std::move(allowed), {}});
}

void Problems::Warning(Mark mark, std::string message, std::string allowed) {
  Add({mark, Severity::kWarning, std::move(message), std::move(allowed), {}});
}

void Problems::Missing(Mark mark, std::string_view key, std::string message, std::string allowed) {
  Add({mark, Severity::kError, std::move(message), std::move(allowed), std::string(key)});
}

void Problems::Locate(const std::function<std::string(Mark, bool)>& path_at) {
  for (auto& problem : items_) {
    auto at = path_at(problem.mark, !problem.path.empty());
    if (!at.empty() && !problem.path.empty()) at += '.';
    problem.path = at + problem.path;
  }
}

std::vector<Problem> Problems::Sorted() const {
  auto out = items_;
  std::stable_sort(out.begin(), out.end(),
                   [](const Problem& a, const Problem& b) { return a.mark < b.mark; });
  if (left_off_ > 0) {
    const auto severity = HasErrors() ? Severity::kError : Severity::kWarning;
    out.push_back({out.back().mark,
                   severity,
                   "and " + std::to_string(left_off_) + " more, not shown",
                   {},
                   {}});
  }
  return out;
}

muster::Error ToError(const Problems& problems) {
  const auto sorted = problems.Sorted();
  const auto first = std::find_if(sorted.begin(), sorted.end(), [](const Problem& problem) {
    return problem.severity == Severity::kError;
  });
  muster::Error error{ErrorCode::kInvalid, "invalid", {}};
  if (first == sorted.end()) return error;
  for (const auto& problem : sorted) {
    if (problem.severity != Severity::kError) continue;
    error.all.push_back({ErrorCode::kInvalid, At(problem), Hint(problem), problem.path});
  }
  error.message = At(*first);
  error.path = first->path;
  if (problems.Errors() > 1) {
    error.message += ", and " + std::to_string(problems.Errors() - 1) + " more";
  }
  error.hint = Hint(*first);
  return error;
}

std::string Describe(const Problem& problem) {
  std::string out = problem.severity == Severity::kError ? "error: " : "warning: ";
  out += problem.message;
  if (!problem.allowed.empty()) out += " (allowed: " + problem.allowed + ")";
  return out;
}

std::string Quoted(std::string_view text) {
  std::string out = "`";
  std::size_t at = 0;
  while (at < text.size() && at < kQuotedBytes) {
    const auto length = CharacterLength(text.substr(at));
    const bool show = length > 0 && !IsControl(text.substr(at));
    out += show ? text.substr(at, length) : "?";
    at += length > 0 ? length : 1;
  }
  if (at < text.size()) out += "...";
  return out + "`";
}

std::string_view Nearest(std::string_view text, std::span<const std::string_view> candidates) {
  if (text.empty() || text.size() > kNearestBytes) return {};
  std::string_view best;
  // Two slips, and no more than a third of the word: "tune" is no "run" mistyped.
  std::size_t best_distance = std::min<std::size_t>(2, text.size() / 3) + 1;
  for (const auto candidate : candidates) {
    // A whole short word must not be "near" to another that shares nothing with it.
    const auto distance = Distance(text, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string JoinChoices(std::span<const std::string_view> choices) {
  std::string out;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) out += i + 1 == choices.size() ? " or " : ", ";
    out += choices[i];
  }
  return out;
}

}  // namespace muster::model
