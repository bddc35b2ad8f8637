#include "api/selection.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "api/listing.h"
#include "base/hex.h"
#include "model/document_writer.h"
#include "model/fields.h"

namespace muster::api {
namespace {

using model::DocNode;

tl::unexpected<Error> Wrong(const char* parameter, const std::string& what,
                            const std::string& hint) {
  Error error{ErrorCode::kUsage, what, hint};
  error.path = parameter;
  return tl::unexpected(std::move(error));
}

tl::unexpected<Error> NoCursor() {
  return Wrong("cursor", "this is no cursor of this list",
               "take `next` of the page before, with the same `sort`");
}

// A label's own name may have dots.
const DocNode* At(const DocNode& item, std::string_view path) {
  if (const auto* whole = item.Find(path)) return whole;
  const auto dot = path.find('.');
  const auto* outer = dot == path.npos ? nullptr : item.Find(path.substr(0, dot));
  return outer == nullptr ? nullptr : At(*outer, path.substr(dot + 1));
}

// All values that are there by that name, those inside lists one by one.
void Collect(const DocNode& item, std::string_view path, std::vector<std::string_view>& texts) {
  if (item.kind == model::DocKind::kSequence) {
    for (const auto& one : item.children) Collect(one, path, texts);
  } else if (path.empty()) {
    if (item.kind == model::DocKind::kScalar) texts.emplace_back(item.text);
  } else {
    const auto dot = std::min(path.find('.'), path.size());
    const auto* inner = item.Find(path.substr(0, dot));
    if (inner != nullptr) Collect(*inner, path.substr(std::min(dot + 1, path.size())), texts);
  }
}

std::string_view TextAt(const DocNode& item, const Key& key) {
  const auto* found = At(item, key.path);
  const bool scalar = found != nullptr && found->kind == model::DocKind::kScalar;
  if (key.kind == Key::Kind::kFlag && !scalar) return "false";
  return scalar ? std::string_view(found->text) : std::string_view();
}

std::optional<double> NumberOf(std::string_view text) {
  if (text == "unlimited") return std::numeric_limits<double>::infinity();
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// What is not there comes first.
int Compare(Key::Kind kind, std::string_view a, std::string_view b) {
  if (kind != Key::Kind::kNumber) return NaturalOrder(a, b);
  const auto none = -std::numeric_limits<double>::infinity();
  const auto left = NumberOf(a).value_or(none), right = NumberOf(b).value_or(none);
  return left < right ? -1 : left > right ? 1 : 0;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

int NaturalOrder(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (IsDigit(a[i]) && IsDigit(b[j])) {
      const auto number = [](std::string_view text, std::size_t& at) {
        while (at + 1 < text.size() && text[at] == '0' && IsDigit(text[at + 1])) ++at;
        const auto begin = at;
        while (at < text.size() && IsDigit(text[at])) ++at;
        return text.substr(begin, at - begin);
      };
      const auto left = number(a, i), right = number(b, j);
      if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
      if (const int order = left.compare(right); order != 0) return order < 0 ? -1 : 1;
      continue;
    }
    const auto rank = [](char c) { return c == '/' ? 0 : 1 + static_cast<unsigned char>(c); };
    if (a[i] != b[j]) return rank(a[i]) < rank(b[j]) ? -1 : 1;
    ++i;
    ++j;
  }
  if (i < a.size() || j < b.size()) return i < a.size() ? 1 : -1;
  const int order = a.compare(b);  // "01" and "1"
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

std::optional<Key> Selection::Find(std::string_view name) const {
  for (const std::string_view prefix : {"", "status.", "spec."}) {
    const auto path = std::string(prefix) + std::string(name);
    for (const auto& key : operation_->keys) {
      if (!key.open && key.path == path) return key;
      const bool below = key.open && path.size() > key.path.size() + 1 &&
                         path.starts_with(key.path) && path[key.path.size()] == '.';
      if (below) return Key{path, key.kind, false, key.many};
    }
  }
  return std::nullopt;
}

tl::unexpected<Error> Selection::Unknown(const char* parameter, std::string_view name) const {
  const bool sorts = parameter == std::string_view("sort");
  std::string list;
  for (const auto& key : operation_->keys) {
    if (sorts && key.many) continue;
    if (!list.empty()) list += ", ";
    list += key.path;
    if (key.open) list += ".KEY";
  }
  return Wrong(parameter, "\"" + std::string(name) + "\" is no key of this list",
               "there are: " + list);
}

Result<Selection::Condition> Selection::ReadCondition(Comparison words) const {
  const auto key = Find(words.key);
  if (!key) return Unknown("filter", words.key);
  Condition condition{std::move(words), *key};
  const auto& value = condition.value;
  const bool contains = condition.op == Comparison::Op::kContains;
  switch (key->kind) {
    case Key::Kind::kNumber:
      if (contains || !NumberOf(value)) {
        return WrongFilter(condition, "compares a number with what is none", key->path + ">=4");
      }
      break;
    case Key::Kind::kFlag:
      if (!condition.IsEquality() || (value != "true" && value != "false")) {
        return WrongFilter(condition, key->path + " is true or false", key->path + "=true");
      }
      break;
    case Key::Kind::kText:
      if (!condition.IsEquality() && !contains) {
        return WrongFilter(condition, key->path + " is a text", "use =, != or ~");
      }
      break;
    case Key::Kind::kTime:
      break;
  }
  return condition;
}

Result<void> Selection::ReadFilter() {
  auto all = SplitFilter(wish_.filter);
  if (!all) return tl::unexpected(all.error());
  for (auto& one : *all) {
    auto condition = ReadCondition(std::move(one));
    if (!condition) return tl::unexpected(condition.error());
    conditions_.push_back(std::move(*condition));
  }
  return {};
}

Result<void> Selection::ReadSort() {
  sort_ = id_ = operation_->keys.front();
  if (wish_.sort.empty()) return {};
  descending_ = wish_.sort.starts_with('-');
  const auto name = std::string_view(wish_.sort).substr(descending_ ? 1 : 0);
  const auto key = Find(name);
  if (!key || key->many) return Unknown("sort", name);
  sort_ = *key;
  return {};
}

Result<Selection> Selection::Make(const Operation& operation, Wish wish) {
  Selection made;
  made.operation_ = &operation;
  made.wish_ = std::move(wish);
  if (auto read = made.ReadFilter(); !read) return tl::unexpected(read.error());
  if (auto read = made.ReadSort(); !read) return tl::unexpected(read.error());
  if (auto known = CheckFields(operation, made.wish_.fields); !known) {
    return tl::unexpected(known.error());
  }
  return made;
}

bool Selection::Holds(const Condition& condition, const DocNode& item) {
  if (!condition.at.many) return Meets(condition, TextAt(item, condition.at));
  // One of them must meet it; what is said not to be so must be so of none.
  std::vector<std::string_view> texts;
  Collect(item, condition.at.path, texts);
  const auto meets = [&](std::string_view text) { return Meets(condition, text); };
  if (condition.op == Comparison::Op::kIsNot) return std::all_of(texts.begin(), texts.end(), meets);
  return std::any_of(texts.begin(), texts.end(), meets);
}

bool Selection::Meets(const Condition& condition, std::string_view text) {
  using Op = Comparison::Op;
  if (condition.op == Op::kContains) return text.find(condition.value) != text.npos;
  if (text.empty() && condition.op != Op::kIs) return condition.op == Op::kIsNot;
  return condition.Meets(condition.at.kind == Key::Kind::kNumber
                             ? Compare(condition.at.kind, text, condition.value)
                             : text.compare(condition.value));
}

bool Selection::Holds(const DocNode& item) const {
  return std::all_of(conditions_.begin(), conditions_.end(),
                     [&](const auto& condition) { return Holds(condition, item); });
}

DocNode Selection::Shown(DocNode item) const {
  return wish_.fields.empty() ? std::move(item) : Pick(item, wish_.fields);
}

DocNode Selection::Answer(std::vector<DocNode> items, const std::string& next,
                          std::uint64_t revision) const {
  DocNode list = model::ListNode(), node = model::MapNode();
  list.children = std::move(items);
  Put(node, operation_->noun, std::move(list));
  if (!next.empty()) Put(node, "next", model::TextNode(next));
  Put(node, "revision", model::NumberNode(static_cast<std::int64_t>(revision)));
  return node;
}

Result<std::optional<std::uint64_t>> Selection::NumberInCursor() const {
  if (wish_.cursor.empty()) return std::nullopt;
  const auto number = model::ParseWhole(wish_.cursor);
  if (!number || *number <= 0) return NoCursor();
  return static_cast<std::uint64_t>(*number);
}

Result<std::optional<Selection::Cursor>> Selection::ReadCursor() const {
  if (wish_.cursor.empty()) return std::nullopt;
  const auto text = FromHex(wish_.cursor);
  const auto first = text ? text->find('\n') : std::string::npos;
  const auto second = first == std::string::npos ? first : text->find('\n', first + 1);
  if (second == std::string::npos || text->substr(0, first) != wish_.sort) return NoCursor();
  return Cursor{text->substr(second + 1), text->substr(first + 1, second - first - 1)};
}

bool Selection::Before(std::string_view a, std::string_view a_id, std::string_view b,
                       std::string_view b_id) const {
  const int order = Compare(sort_.kind, a, b);
  if (order != 0) return descending_ ? order > 0 : order < 0;
  return Compare(id_.kind, a_id, b_id) < 0;
}

std::vector<DocNode> Selection::Make(Items items, const std::optional<Cursor>& cursor) const {
  if (!items.item) return std::move(items.made);
  const auto& ids = items.ids;
  std::vector<std::size_t> wanted(ids.size());
  std::iota(wanted.begin(), wanted.end(), std::size_t{0});
  if (conditions_.empty() && sort_.path == id_.path) {
    const auto before = [this](const std::string& a, const std::string& b) {
      return Before(a, a, b, b);
    };
    std::erase_if(wanted, [&](auto at) { return cursor && !before(cursor->id, ids[at]); });
    const auto shown = std::min(wanted.size(), wish_.limit + 1);  // one more: there is a next page
    std::partial_sort(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(shown),
                      wanted.end(), [&](auto a, auto b) { return before(ids[a], ids[b]); });
    wanted.resize(shown);
  }
  std::vector<DocNode> made;
  made.reserve(wanted.size());
  for (const auto at : wanted) made.push_back(items.item(at));
  return made;
}

Result<DocNode> Selection::Page(Items items, std::uint64_t revision) const {
  const auto cursor = ReadCursor();
  if (!cursor) return tl::unexpected(cursor.error());
  auto made = Make(std::move(items), *cursor);
  std::erase_if(made, [&](const DocNode& item) {
    const auto& from = *cursor;
    const bool seen = from && !Before(from->key, from->id, TextAt(item, sort_), TextAt(item, id_));
    return seen || !Holds(item);
  });
  std::sort(made.begin(), made.end(), [&](const DocNode& a, const DocNode& b) {
    return Before(TextAt(a, sort_), TextAt(a, id_), TextAt(b, sort_), TextAt(b, id_));
  });
  std::string next;
  if (made.size() > wish_.limit) {
    made.resize(wish_.limit);
    const auto& last = made.back();
    next = wish_.sort + '\n';
    next += TextAt(last, id_);
    next += '\n';
    next += TextAt(last, sort_);
    next = ToHex(next);
  }
  for (auto& item : made) item = Shown(std::move(item));
  return Answer(std::move(made), next, revision);
}

}  // namespace muster::api
