// Router: which call a request is, by the OpenAPI document that the daemon serves.
//
// The document in the tree is the only table of routes there is, so nothing undocumented can
// answer, and a documented call without a handler is found when the daemon starts. Parameters are
// checked against it too: an unknown one, a number out of its range or a word that is not listed is
// refused before any handler sees it. A path parameter at the end may span slashes, since names of
// queues do; an empty word in a path is nowhere. HEAD goes where GET goes. Made once; finding a
// route costs a few dozen comparisons of short words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/access.h"
#include "model/document.h"
#include "net/http.h"

namespace muster::api {

struct Parameter {
  enum class In : std::uint8_t { kPath, kQuery, kHeader };
  enum class Type : std::uint8_t { kText, kWhole, kFlag, kWords };
  std::string name;
  In in = In::kQuery;
  Type type = Type::kText;
  bool required = false;
  std::int64_t minimum = INT64_MIN;
  std::int64_t maximum = INT64_MAX;
  std::size_t longest = 4096;
  std::vector<std::string> allowed;  // empty: anything
};

// A key of the items of a list, as `filter` and `sort` name it.
struct Key {
  enum class Kind : std::uint8_t { kText, kNumber, kFlag, kTime };
  std::string path;  // "status.phase"
  Kind kind = Kind::kText;
  bool open = false;  // "labels": any word behind it is a key
  bool many = false;  // inside a list, of which one must meet a condition; nothing to sort by
};

// What `fields` can name: a single value, or a part with all that is in it.
struct Field {
  std::string path;
  bool open = false;  // any word behind it may be asked for
};

struct Operation {
  std::string id;
  std::string method;
  std::vector<std::string> words;  // of the path; "{job}" is a parameter
  std::string verb;                // behind the colon of the last word; empty: none
  control::Role role = control::Role::kAdmin;
  bool open = false;      // to whoever can reach us, without a token
  bool upgrades = false;  // to a WebSocket, of which there is no head alone
  std::size_t most_body_bytes = 0;
  std::vector<Parameter> parameters;
  std::string noun;           // of a list, under which its items are; empty: it is none
  std::vector<Key> keys;      // of an item; the first tells one item from another
  std::vector<Field> fields;  // of an item, or of the one object that it answers with
};

struct Match {
  const Operation* operation = nullptr;
  std::map<std::string, std::string> path;  // the path's parameters
};

class Router {
 public:
  static Result<Router> Make(std::string_view openapi);

  // kNotFound: no such path; kUsage: the path is there, with the methods that the hint lists.
  Result<Match> Find(const std::string& method, std::string_view path) const;
  const std::vector<Operation>& operations() const { return operations_; }
  const model::DocNode& document() const { return document_; }

  static Result<void> Check(const Operation& operation, const net::Request& request);

 private:
  bool IsVerb(std::string_view word) const;
  Result<void> Read();
  Result<Operation> ReadOperation(const std::string& path, const model::DocNode& item,
                                  const model::DocNode& node) const;
  Result<Parameter> ReadParameter(const model::DocNode& node) const;
  Result<void> ReadAnswer(const model::DocNode& node, Operation& operation) const;
  void ReadKeys(const model::DocNode& schema, const std::string& path, bool many,
                Operation& operation) const;
  void ReadFields(const model::DocNode& schema, const std::string& path,
                  Operation& operation) const;
  const model::DocNode* Follow(const model::DocNode* node) const;  // its $ref, where it is one

  model::DocNode document_;
  std::vector<Operation> operations_;
};

// The document, as it is in the tree.
std::string OpenApiText();

}  // namespace muster::api
