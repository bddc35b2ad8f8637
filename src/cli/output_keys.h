// OutputKeys: what every verb prints with `-o json`, key by key.
//
// One table feeds docs/cli.md and the test that drives the verbs and fails for a key that is not in
// it. A path is written as `jobs[].id`; `phases.*` stands for names that are data. What is an
// object of the API is told by the name of its schema in docs/api.md, which is not repeated here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct KeyDoc {
  std::string path;    // "checks[].name"; ".": the whole document
  std::string schema;  // of docs/api.md; empty: a key of its own
  std::string help;
};

// None: the verb prints no document. `verb` is its path: "queue list".
std::vector<KeyDoc> KeysOf(std::string_view verb);

}  // namespace muster::cli
