#include "api/router.h"

#include <algorithm>
#include <array>

#include "model/fields.h"

namespace muster::api {
namespace {

using model::DocNode;

constexpr std::array<std::string_view, 5> kMethods = {"get", "post", "put", "patch", "delete"};
constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20;

// Those behind each slash; one that is empty stays.
std::vector<std::string> Words(std::string_view path) {
  std::vector<std::string> words;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    words.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return words;
}

bool IsParameter(const std::string& word) { return word.starts_with('{'); }

std::string TextOf(const DocNode& node, std::string_view key) {
  const auto* found = node.Find(key);
  return found == nullptr ? "" : found->text;
}

std::int64_t NumberOf(const DocNode& node, std::string_view key, std::int64_t otherwise) {
  return model::ParseWhole(TextOf(node, key)).value_or(otherwise);
}

tl::unexpected<Error> Broken(const std::string& what) {
  return Fail(ErrorCode::kInternal, "the OpenAPI document: " + what);
}

tl::unexpected<Error> Wrong(const Parameter& parameter, const std::string& why) {
  Error error{ErrorCode::kUsage, "parameter \"" + parameter.name + "\" " + why, ""};
  error.path = parameter.name;
  return tl::unexpected(std::move(error));
}

Result<void> CheckWord(const Parameter& parameter, std::string_view value) {
  const auto& allowed = parameter.allowed;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) {
    return {};
  }
  std::string list;
  for (const auto& word : allowed) {
    if (!list.empty()) list += ", ";
    list += word;
  }
  return Wrong(parameter, "is one of: " + list);
}

Result<void> CheckValue(const Parameter& parameter, const std::string& value) {
  if (value.size() > parameter.longest) {
    return Wrong(parameter, "has more than " + std::to_string(parameter.longest) + " bytes");
  }
  if (parameter.type == Parameter::Type::kWords) {
    for (std::string_view rest = value; !rest.empty();) {
      const auto comma = std::min(rest.find(','), rest.size());
      if (auto sound = CheckWord(parameter, rest.substr(0, comma)); !sound) return sound;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return {};
  }
  if (parameter.type == Parameter::Type::kFlag) {
    const bool known = value == "1" || value == "0" || value == "true" || value == "false";
    return known ? Result<void>() : Wrong(parameter, "is true or false");
  }
  if (parameter.type == Parameter::Type::kWhole) {
    const auto number = model::ParseWhole(value);
    if (!number || *number < parameter.minimum || *number > parameter.maximum) {
      return Wrong(
          parameter,
          "is a whole number" +
              (parameter.minimum == INT64_MIN ? std::string()
                                              : ", at least " + std::to_string(parameter.minimum)) +
              (parameter.maximum == INT64_MAX ? std::string()
                                              : ", at most " + std::to_string(parameter.maximum)));
    }
  }
  return CheckWord(parameter, value);
}

// YAML leaves the quotes of most texts away; JSON does not.
void QuoteTexts(DocNode& node) {
  if (node.kind == model::DocKind::kScalar) {
    const bool bare =
        node.text == "true" || node.text == "false" || model::ParseWhole(node.text).has_value();
    node.quoted |= !bare;
  }
  for (auto& child : node.children) QuoteTexts(child);
}

// The path's parameters, when the words are those of the operation.
bool Matches(const Operation& operation, const std::vector<std::string>& words,
             std::string_view verb, std::map<std::string, std::string>& path) {
  const auto& wanted = operation.words;
  if (wanted.empty() || words.size() < wanted.size() || verb != operation.verb) return false;
  const bool open_end = IsParameter(wanted.back()) && operation.verb.empty();
  if (words.size() > wanted.size() && !(open_end && wanted.back() == "{queue}")) return false;
  path.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!IsParameter(wanted[i])) {
      if (wanted[i] != words[i]) return false;
      continue;
    }
    auto& value = path[wanted[i].substr(1, wanted[i].size() - 2)];
    value = words[i];
  }
  for (std::size_t i = wanted.size(); i < words.size(); ++i) {
    auto& value = path["queue"];
    value += "/";
    value += words[i];
  }
  return true;
}

}  // namespace

Result<Router> Router::Make(std::string_view openapi) {
  model::Problems problems;
  auto documents = model::ParseDocuments(openapi, problems);
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  if (documents.size() != 1) return Broken("is not one document");
  Router router;
  router.document_ = std::move(documents.front());
  QuoteTexts(router.document_);
  if (auto read = router.Read(); !read) return tl::unexpected(read.error());
  return router;
}

Result<void> Router::Read() {
  const auto* paths = document_.Find("paths");
  if (paths == nullptr) return Broken("has no paths");
  for (const auto& item : paths->children) {
    for (const auto& node : item.children) {
      if (std::find(kMethods.begin(), kMethods.end(), node.key) == kMethods.end()) continue;
      auto operation = ReadOperation(item.key, item, node);
      if (!operation) return tl::unexpected(operation.error());
      operations_.push_back(std::move(*operation));
    }
  }
  return {};
}

const DocNode* Router::Follow(const DocNode* node) const {
  const auto* reference = node == nullptr ? nullptr : node->Find("$ref");
  if (reference == nullptr) return node;
  const DocNode* at = &document_;
  for (const auto& word : Words(std::string_view(reference->text).substr(1))) {
    at = at == nullptr ? nullptr : at->Find(word);
  }
  return at;
}

Result<Parameter> Router::ReadParameter(const DocNode& node) const {
  const auto* found = Follow(&node);
  const auto* schema = found == nullptr ? nullptr : Follow(found->Find("schema"));
  if (schema == nullptr) return Broken("a parameter has no schema");
  Parameter parameter;
  parameter.name = TextOf(*found, "name");
  const auto in = TextOf(*found, "in"), type = TextOf(*schema, "type");
  parameter.in = in == "path"     ? Parameter::In::kPath
                 : in == "header" ? Parameter::In::kHeader
                                  : Parameter::In::kQuery;
  parameter.type = type == "integer"   ? Parameter::Type::kWhole
                   : type == "boolean" ? Parameter::Type::kFlag
                   : type == "array"   ? Parameter::Type::kWords
                                       : Parameter::Type::kText;
  parameter.required = TextOf(*found, "required") == "true";
  parameter.minimum = NumberOf(*schema, "minimum", INT64_MIN);
  parameter.maximum = NumberOf(*schema, "maximum", INT64_MAX);
  parameter.longest = static_cast<std::size_t>(NumberOf(*schema, "maxLength", 4096));
  if (type == "array") schema = Follow(schema->Find("items"));
  if (const auto* words = schema == nullptr ? nullptr : schema->Find("enum")) {
    for (const auto& word : words->children) parameter.allowed.push_back(word.text);
  }
  return parameter;
}

Result<Operation> Router::ReadOperation(const std::string& path, const DocNode& item,
                                        const DocNode& node) const {
  Operation operation;
  operation.id = TextOf(node, "operationId");
  operation.method = node.key;
  std::transform(node.key.begin(), node.key.end(), operation.method.begin(),
                 [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  operation.words = Words(path);
  if (const auto colon = operation.words.back().find(':'); colon != std::string::npos) {
    operation.verb = operation.words.back().substr(colon + 1);
    operation.words.back().resize(colon);
  }
  operation.role = control::ParseRole(TextOf(node, "x-role"));
  const auto* security = node.Find("security");
  operation.open = security != nullptr && security->children.empty();
  const auto* responses = node.Find("responses");
  operation.upgrades = responses != nullptr && responses->Find("101") != nullptr;
  if (node.Find("requestBody") != nullptr) {
    const auto most = NumberOf(node, "x-max-body", static_cast<std::int64_t>(kMostBodyBytes));
    operation.most_body_bytes = static_cast<std::size_t>(most);
  }
  for (const auto* owner : {&item, &node}) {
    const auto* list = owner->Find("parameters");
    for (const auto& one : list == nullptr ? std::vector<DocNode>{} : list->children) {
      auto parameter = ReadParameter(one);
      if (!parameter) return tl::unexpected(parameter.error());
      operation.parameters.push_back(std::move(*parameter));
    }
  }
  if (auto read = ReadAnswer(node, operation); !read) return tl::unexpected(read.error());
  return operation;
}

// What takes `fields` answers with an object, or with a list where it takes a filter as well. What
// those look like says which keys there are.
Result<void> Router::ReadAnswer(const DocNode& node, Operation& operation) const {
  const auto takes = [&operation](std::string_view name) {
    return std::any_of(operation.parameters.begin(), operation.parameters.end(),
                       [name](const auto& one) { return one.name == name; });
  };
  if (!takes("filter") && !takes("fields")) return {};
  const DocNode* at = &node;
  for (const char* word : {"responses", "200", "content", "application/json", "schema"}) {
    at = at == nullptr ? nullptr : Follow(at->Find(word));
  }
  if (at == nullptr) return Broken(operation.id + " takes `fields` and answers with no object");
  if (!takes("filter")) {
    ReadFields(*at, "", operation);
    return {};
  }
  const auto* properties = at->Find("properties");
  for (const auto& one : properties == nullptr ? std::vector<DocNode>{} : properties->children) {
    const auto* items = one.Find("items");
    if (items == nullptr) continue;
    operation.noun = one.key;
    ReadKeys(*items, "", false, operation);
    ReadFields(*items, "", operation);
    if (!operation.keys.empty()) return {};
  }
  return Broken(operation.id + " takes a filter and answers with no list");
}

namespace {

bool TypeIs(const DocNode& schema, std::string_view type) {
  const auto* types = schema.Find("type");
  if (types == nullptr) return false;
  return types->text == type || std::any_of(types->children.begin(), types->children.end(),
                                            [type](const auto& one) { return one.text == type; });
}

}  // namespace

void Router::ReadKeys(const DocNode& schema, const std::string& path, bool many,
                      Operation& operation) const {
  const auto* found = Follow(&schema);
  if (found == nullptr || found->Find("x-secret") != nullptr) return;
  if (schema.Find("x-detail") != nullptr) return;
  const auto add = [&](Key::Kind kind) { operation.keys.push_back({path, kind, false, many}); };
  if (TypeIs(*found, "number") || TypeIs(*found, "integer")) {
    add(Key::Kind::kNumber);
  } else if (TypeIs(*found, "boolean")) {
    add(Key::Kind::kFlag);
  } else if (TypeIs(*found, "string")) {
    add(found->Find("pattern") != nullptr ? Key::Kind::kTime : Key::Kind::kText);
  }
  if (const auto* items = TypeIs(*found, "array") ? found->Find("items") : nullptr) {
    ReadKeys(*items, path, true, operation);
  }
  if (!TypeIs(*found, "object")) return;
  const std::string below = path.empty() ? "" : path + ".";
  const auto* properties = found->Find("properties");
  for (const auto& one : properties == nullptr ? std::vector<DocNode>{} : properties->children) {
    ReadKeys(one, below + one.key, many, operation);
  }
  const auto* more = found->Find("additionalProperties");
  if (more == nullptr || more->kind != model::DocKind::kMap) return;
  ReadKeys(*more, path, many, operation);
  operation.keys.back().open = true;
}

// Lists are taken as a whole, and so is what the document does not describe further.
void Router::ReadFields(const DocNode& schema, const std::string& path,
                        Operation& operation) const {
  const auto* found = Follow(&schema);
  const bool left_out = !operation.noun.empty() && schema.Find("x-detail") != nullptr;
  if (found == nullptr || left_out) return;
  const bool object = TypeIs(*found, "object");
  const auto* properties = object ? found->Find("properties") : nullptr;
  if (!path.empty()) operation.fields.push_back({path, object && properties == nullptr});
  for (const auto& one : properties == nullptr ? std::vector<DocNode>{} : properties->children) {
    ReadFields(one, path.empty() ? one.key : path + "." + one.key, operation);
  }
}

namespace {

tl::unexpected<Error> NoCall(const std::string& method, std::string_view path) {
  return Fail(ErrorCode::kNotFound, "there is no call " + method + " " + std::string(path),
              "GET /api/v1/openapi.json lists them");
}

}  // namespace

bool Router::IsVerb(std::string_view word) const {
  return std::any_of(operations_.begin(), operations_.end(),
                     [word](const Operation& one) { return !word.empty() && one.verb == word; });
}

Result<Match> Router::Find(const std::string& method, std::string_view path) const {
  auto words = Words(path);
  std::string verb;
  if (std::find(words.begin(), words.end(), "") != words.end()) return NoCall(method, path);
  const auto colon = words.empty() ? std::string::npos : words.back().rfind(':');
  if (colon != std::string::npos && (method == "POST" || IsVerb(words.back().substr(colon + 1)))) {
    verb = words.back().substr(colon + 1);
    words.back().resize(colon);
  }
  Match match;
  std::string others;
  for (const auto& operation : operations_) {
    if (!Matches(operation, words, verb, match.path)) continue;
    const bool head = operation.method == "GET" && !operation.upgrades;
    if (operation.method == method || (head && method == "HEAD")) {
      match.operation = &operation;
      return match;
    }
    if (!others.empty()) others += ", ";
    others += head ? "GET, HEAD" : operation.method;
  }
  if (!others.empty()) {
    return Fail(ErrorCode::kUsage, method + " is nothing that " + std::string(path) + " knows",
                others);
  }
  return NoCall(method, path);
}

Result<void> Router::Check(const Operation& operation, const net::Request& request) {
  for (const auto& [name, value] : request.query) {
    const auto known = std::find_if(
        operation.parameters.begin(), operation.parameters.end(),
        [&name = name](const auto& p) { return p.in == Parameter::In::kQuery && p.name == name; });
    if (known == operation.parameters.end()) {
      std::string list;
      for (const auto& parameter : operation.parameters) {
        if (parameter.in != Parameter::In::kQuery) continue;
        list += (list.empty() ? "" : ", ") + parameter.name;
      }
      Error error{ErrorCode::kUsage, operation.id + " has no parameter \"" + name + "\"",
                  list.empty() ? "it has none" : "it has: " + list};
      error.path = name;
      return tl::unexpected(std::move(error));
    }
    if (auto sound = CheckValue(*known, value); !sound) return sound;
  }
  for (const auto& parameter : operation.parameters) {
    if (parameter.in == Parameter::In::kHeader) {
      const auto* value = request.Find(parameter.name);
      if (value == nullptr) continue;
      if (auto sound = CheckValue(parameter, *value); !sound) return sound;
    }
    if (parameter.in == Parameter::In::kQuery && parameter.required &&
        !request.query.contains(parameter.name)) {
      return Wrong(parameter, "is missing");
    }
  }
  return {};
}

}  // namespace muster::api
