#include "api/listing.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/units.h"
#include "model/document_writer.h"
#include "model/fields.h"
#include "model/vocabulary.h"

namespace muster::api {
namespace {

using state::JobRecord;

constexpr std::array<std::string_view, 8> kKeys = {"id",   "name",  "user",     "queue",
                                                   "kind", "phase", "priority", "gpus"};

constexpr std::size_t kMostConditions = 16;
constexpr std::int64_t kMostFields = 32;

bool IsNumber(std::string_view key) { return key == "id" || key == "priority" || key == "gpus"; }

std::int64_t NumberOf(std::string_view key, const JobRecord& job) {
  if (key == "id") return static_cast<std::int64_t>(job.id) * kMilli;
  if (key == "priority") return job.spec->priority * kMilli;
  return state::GpuMilli(*job.spec);
}

// `made` holds the text where none is there that could be pointed to.
std::string_view TextOf(const std::string& key, const JobRecord& job, std::string& made) {
  if (key == "phase") return state::Name(state::PhaseOf(job));
  if (key == "user") return job.user;
  if (key == "queue") return job.spec->queue;
  if (key == "kind") return model::NameOf(job.spec->kind);
  if (key == "name") {
    if (job.array == 0) return job.spec->name;
    made = job.name();
    return made;
  }
  const auto label = job.spec->labels.find(key.substr(std::string_view("labels.").size()));
  return label == job.spec->labels.end() ? std::string_view() : label->second;
}

tl::unexpected<Error> Wrong(const std::string& what, const std::string& hint) {
  Error error{ErrorCode::kUsage, what, hint};
  error.path = "filter";
  return tl::unexpected(std::move(error));
}

Result<Condition> ParseCondition(std::string_view text) {
  using Op = Condition::Op;
  const auto at = text.find_first_of("=!~<>");
  const std::string shown(text);
  if (at == std::string_view::npos || at == 0) {
    return Wrong("\"" + shown + "\" is no condition", "write it like phase=running or gpus>=4");
  }
  Condition condition;
  condition.key = text.substr(0, at);
  const auto two = text.substr(at, 2);
  const std::size_t size = two == "!=" || two == ">=" || two == "<=" ? 2 : 1;
  condition.op = two == "!="       ? Op::kIsNot
                 : two == ">="     ? Op::kAtLeast
                 : two == "<="     ? Op::kAtMost
                 : text[at] == '~' ? Op::kContains
                 : text[at] == '>' ? Op::kAbove
                 : text[at] == '<' ? Op::kBelow
                                   : Op::kIs;
  condition.value = text.substr(at + size);
  const bool known = std::find(kKeys.begin(), kKeys.end(), condition.key) != kKeys.end() ||
                     (condition.key.starts_with("labels.") && condition.key.size() > 7);
  if (!known || (text[at] == '!' && size == 1)) {
    return Wrong("\"" + shown + "\" names no key of a job",
                 "id, name, user, queue, kind, phase, priority, gpus or labels.KEY");
  }
  if (IsNumber(condition.key)) {
    const auto number = ParseMilli(condition.value);
    if (!number || condition.op == Op::kContains) {
      return Wrong("\"" + shown + "\" compares " + condition.key + " with what is no number",
                   condition.key + ">=4");
    }
    condition.number = *number;
  } else if (condition.op != Op::kIs && condition.op != Op::kIsNot &&
             condition.op != Op::kContains) {
    return Wrong("\"" + shown + "\": " + condition.key + " is a text", "use =, != or ~");
  }
  return condition;
}

bool Holds(const Condition& condition, const JobRecord& job) {
  using Op = Condition::Op;
  if (IsNumber(condition.key)) {
    const auto number = NumberOf(condition.key, job);
    switch (condition.op) {
      case Op::kIs:
        return number == condition.number;
      case Op::kIsNot:
        return number != condition.number;
      case Op::kAtLeast:
        return number >= condition.number;
      case Op::kAtMost:
        return number <= condition.number;
      case Op::kAbove:
        return number > condition.number;
      case Op::kBelow:
        return number < condition.number;
      case Op::kContains:
        return false;
    }
  }
  std::string made;
  const auto text = TextOf(condition.key, job, made);
  if (condition.op == Op::kContains) return text.find(condition.value) != std::string_view::npos;
  return (text == condition.value) == (condition.op == Op::kIs);
}

}  // namespace

Result<std::vector<Condition>> ParseFilter(std::string_view text) {
  std::vector<Condition> conditions;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    auto condition = ParseCondition(text.substr(0, comma));
    if (!condition) return tl::unexpected(condition.error());
    conditions.push_back(std::move(*condition));
    if (conditions.size() > kMostConditions) {
      return Wrong("there are more than " + std::to_string(kMostConditions) + " conditions",
                   "ask for more and look through the answer");
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return conditions;
}

bool Holds(const std::vector<Condition>& conditions, const JobRecord& job) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const auto& condition) { return Holds(condition, job); });
}

Order ParseOrder(std::string_view text) {
  using state::SortBy;
  Order order;
  if (text.empty()) return order;
  order.descending = text.starts_with('-');
  const auto key = text.substr(order.descending ? 1 : 0);
  order.by = key == "name"       ? SortBy::kName
             : key == "user"     ? SortBy::kUser
             : key == "queue"    ? SortBy::kQueue
             : key == "priority" ? SortBy::kPriority
             : key == "gpus"     ? SortBy::kGpus
                                 : SortBy::kNumber;  // created_at too: numbers come in that order
  return order;
}

std::string CursorOf(const Order& order, const JobRecord& job) {
  const auto value = state::JobOrder::ValueOf(order.by, job);
  const auto* number = std::get_if<std::int64_t>(&value);
  return fmt::format("{}.{}", job.id,
                     number != nullptr ? std::to_string(*number) : std::get<std::string>(value));
}

std::string CursorAt(model::JobNumber job) { return fmt::format("{}.{}", job, job); }

Result<std::optional<Place>> ParseCursor(const std::string& text, const Order& order) {
  using state::SortBy;
  if (text.empty()) return std::nullopt;
  const auto dot = std::min(text.find('.'), text.size());
  const auto id = model::ParseWhole(text.substr(0, dot));
  const auto rest = text.substr(std::min(dot + 1, text.size()));
  const bool is_text =
      order.by == SortBy::kName || order.by == SortBy::kUser || order.by == SortBy::kQueue;
  const auto number = model::ParseWhole(rest);
  if (!id || *id < 0 || dot == text.size() || (!is_text && !number)) {
    return tl::unexpected(Error{ErrorCode::kUsage, "this is no cursor of this list",
                                "take `next` of the page before, with the same `sort`", "cursor"});
  }
  Place place{state::JobOrder::Value(rest), static_cast<model::JobNumber>(*id)};
  if (!is_text) place.value = *number;
  return place;
}

Result<void> CheckFields(std::string_view fields) {
  if (std::count(fields.begin(), fields.end(), ',') < kMostFields) return {};
  Error error{ErrorCode::kUsage, "there are more than " + std::to_string(kMostFields) + " fields",
              "leave out `fields` to get all of them"};
  error.path = "fields";
  return tl::unexpected(std::move(error));
}

model::DocNode Pick(const model::DocNode& node, const std::string& fields) {
  model::DocNode out = model::MapNode();
  for (std::string_view rest = fields; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto path = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto dot = path.find('.');
    const auto key = path.substr(0, dot);
    const auto* found = node.Find(key);
    if (found == nullptr) continue;
    auto* there = const_cast<model::DocNode*>(out.Find(key));
    if (dot == std::string_view::npos || found->kind != model::DocKind::kMap) {
      if (there == nullptr) Put(out, key, *found);
      continue;
    }
    auto inner = Pick(*found, std::string(path.substr(dot + 1)));
    if (there == nullptr) {
      Put(out, key, std::move(inner));
    } else {
      for (auto& child : inner.children) {
        if (there->Find(child.key) == nullptr) there->children.push_back(std::move(child));
      }
    }
  }
  return out;
}

}  // namespace muster::api
