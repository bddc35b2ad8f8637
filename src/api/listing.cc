#include "api/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "model/document_writer.h"
#include "model/fields.h"
#include "model/vocabulary.h"

namespace muster::api {
namespace {

using state::JobRecord;

constexpr std::array<std::string_view, 8> kKeys = {"id",   "name",  "user",     "queue",
                                                   "kind", "phase", "priority", "gpus"};

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

// The values that there are; empty: any text.
std::vector<std::string_view> ValuesOf(std::string_view key) {
  if (key == "phase") {
    std::vector<std::string_view> phases;
    phases.reserve(state::kPhases.size());
    for (const auto phase : state::kPhases) phases.push_back(state::Name(phase));
    return phases;
  }
  if (key == "kind") return {model::kJobKindNames.begin(), model::kJobKindNames.end()};
  return {};
}

Result<Condition> ParseCondition(Comparison words) {
  Condition condition{std::move(words)};
  const auto& key = condition.key;
  const bool known = std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end() ||
                     (key.starts_with("labels.") && key.size() > 7);
  if (!known) {
    return WrongFilter(condition, "\"" + key + "\" is no key of a job",
                       "id, name, user, queue, kind, phase, priority, gpus or labels.KEY");
  }
  if (IsNumber(key)) {
    const auto number = ParseMilli(condition.value);
    if (!number || condition.op == Comparison::Op::kContains) {
      return WrongFilter(condition, "compares " + key + " with what is no number", key + ">=4");
    }
    condition.number = *number;
    return condition;
  }
  if (!condition.IsEquality()) {
    if (condition.op == Comparison::Op::kContains) return condition;
    return WrongFilter(condition, key + " is a text", "use =, != or ~");
  }
  const auto values = ValuesOf(key);
  if (!values.empty() && std::find(values.begin(), values.end(), condition.value) == values.end()) {
    return WrongFilter(condition, "there is no " + key + " \"" + condition.value + "\"",
                       fmt::format("one of {}", fmt::join(values, ", ")));
  }
  return condition;
}

bool Holds(const Condition& condition, const JobRecord& job) {
  if (IsNumber(condition.key)) {
    const auto number = NumberOf(condition.key, job);
    return condition.Meets(number < condition.number ? -1 : number > condition.number ? 1 : 0);
  }
  std::string made;
  const auto text = TextOf(condition.key, job, made);
  if (condition.op == Comparison::Op::kContains) return text.find(condition.value) != text.npos;
  return condition.Meets(text == condition.value ? 0 : 1);
}

}  // namespace

Result<std::vector<Condition>> ParseFilter(std::string_view text) {
  auto all = SplitFilter(text);
  if (!all) return tl::unexpected(all.error());
  std::vector<Condition> conditions;
  for (auto& one : *all) {
    auto condition = ParseCondition(std::move(one));
    if (!condition) return tl::unexpected(condition.error());
    conditions.push_back(std::move(*condition));
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

namespace {

// So that a cursor of another order is told from one of this.
std::string Mark(const Order& order) {
  return std::string(1, "inuqpg"[static_cast<std::size_t>(order.by)]) +
         (order.descending ? "d" : "a");
}

}  // namespace

std::string CursorOf(const Order& order, const JobRecord& job) {
  const auto value = state::JobOrder::ValueOf(order.by, job);
  const auto* number = std::get_if<std::int64_t>(&value);
  return fmt::format("{}{}.{}", Mark(order), job.id,
                     number != nullptr ? std::to_string(*number) : std::get<std::string>(value));
}

std::string CursorAt(model::JobNumber job) {
  return fmt::format("{}{}.{}", Mark(Order()), job, job);
}

Result<std::optional<Place>> ParseCursor(const std::string& cursor, const Order& order) {
  using state::SortBy;
  if (cursor.empty()) return std::nullopt;
  const auto mark = Mark(order);
  const auto text = cursor.starts_with(mark) ? cursor.substr(mark.size()) : std::string();
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
