#include "model/paths.h"

#include <map>
#include <string>
#include <string_view>

namespace muster::model {
namespace {

// Longer ones are cut: a file may have keys of any length, and a mistake in each of its lines.
constexpr std::size_t kLongestKey = 128;
constexpr std::size_t kLongestPath = 512;

struct Places {
  std::string key;  // of the innermost value that stands, or whose key stands, at the place
  std::string map;  // of the outermost
  bool found = false;
};

class Walk {
 public:
  explicit Walk(const Problems& problems) {
    for (const auto& problem : problems.Sorted()) places_[problem.mark];
  }

  void Visit(const DocNode& node) {
    Note(node.mark);
    const auto length = path_.size();
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const auto& child = node.children[i];
      if (node.kind == DocKind::kMap) {
        if (!path_.empty()) path_ += '.';
        path_ += std::string_view(child.key).substr(0, kLongestKey);
        Note(child.key_mark);
      } else {
        path_ += '[' + std::to_string(i) + ']';
      }
      Visit(child);
      path_.resize(length);
    }
  }
  void Begin(std::string path) { path_ = std::move(path); }

  std::string At(Mark mark, bool is_map) const {
    const auto found = places_.find(mark);
    if (found == places_.end()) return "";
    return is_map ? found->second.map : found->second.key;
  }

 private:
  void Note(Mark mark) {
    const auto place = places_.find(mark);
    if (place == places_.end()) return;
    const auto path = path_.substr(0, kLongestPath);
    if (!place->second.found) place->second.map = path;
    place->second.found = true;
    place->second.key = path;
  }

  std::map<Mark, Places> places_;
  std::string path_;
};

}  // namespace

void LocateProblems(const std::vector<DocNode>& documents, Problems& problems) {
  Walk walk(problems);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    walk.Begin(documents.size() > 1 ? '[' + std::to_string(i) + ']' : "");
    walk.Visit(documents[i]);
  }
  problems.Locate([&walk](Mark mark, bool is_map) { return walk.At(mark, is_map); });
}

}  // namespace muster::model
