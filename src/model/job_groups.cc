#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "model/job_codec.h"
#include "model/job_roles.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

struct GroupDraft {
  Group group;
  std::optional<std::int64_t> minimum;  // as written
  Mark minimum_mark;
  std::string parent;
  Mark parent_mark;
  Mark mark;
  std::vector<std::size_t> roles;
  int children = 0;
};

class GroupTree {
 public:
  GroupTree(std::vector<RoleDraft>& roles, Problems& problems)
      : roles_(roles), problems_(problems) {
    drafts_.emplace_back();
    drafts_[0].group.name = kRootGroup;
    for (std::size_t i = 0; i < roles.size(); ++i) role_index_.emplace(roles[i].role.name, i);
  }

  void Read(const DocNode& node) {
    if (node.kind != DocKind::kSequence || node.children.empty()) {
      problems_.Error(node.mark,
                      "`groups` must be a list of at least one group, not " + DescribeNode(node),
                      "- {name: a, roles: [worker]}");
      return;
    }
    drafts_[0].mark = node.mark;
    const auto errors = problems_.Errors();
    for (const auto& item : node.children) ReadGroup(item);
    LinkParents();
    if (problems_.Errors() == errors) CheckShape();
    SettleMinima(node);
  }

  void Store(TopologyWish topology, Job& job) {
    drafts_[0].group.topology = std::move(topology);
    for (auto& draft : drafts_) job.groups.push_back(std::move(draft.group));
  }

 private:
  void ReadGroup(const DocNode& node) {
    MapReader reader(node, "a group", problems_);
    GroupDraft draft;
    draft.mark = node.mark;
    if (const auto* name = reader.Require("name", "`name: stage-1`")) {
      draft.group.name =
          ReadMatching(*name, IsName, "the name of a group", kNameRule, problems_).value_or("");
    }
    const bool is_root = draft.group.name == kRootGroup;
    if (const auto* parent = reader.Take("parent")) {
      if (is_root) {
        problems_.Error(parent->key_mark, "the group `root` has no parent",
                        "`root` is the whole job; leave `parent` out");
      } else {
        draft.parent =
            ReadMatching(*parent, IsName, "the name of a group", kNameRule, problems_).value_or("");
        draft.parent_mark = parent->mark;
      }
    }
    if (const auto* minimum = reader.Take("minimum")) {
      draft.minimum = ReadInteger(*minimum, {1, kMostWorkers}, problems_);
      draft.minimum_mark = minimum->mark;
    }
    if (const auto* topology = reader.Take("topology")) {
      draft.group.topology = ReadTopologyWish(*topology, problems_);
      if (is_root) {
        problems_.Error(topology->key_mark, "the group `root` takes its topology from the job",
                        "`topology` at the top level of the job");
      }
    }
    const auto* members = reader.Take("roles");
    reader.Finish();
    if (node.kind != DocKind::kMap || draft.group.name.empty()) return;
    const auto index = Insert(std::move(draft), is_root);
    if (members != nullptr) TakeRoles(*members, index);
  }

  std::size_t Insert(GroupDraft draft, bool is_root) {
    const bool fresh = index_.emplace(draft.group.name, is_root ? 0 : drafts_.size()).second;
    if (!fresh) {
      problems_.Error(draft.mark, "the group " + Quoted(draft.group.name) + " stands here twice",
                      "each group once");
    }
    if (is_root) {
      drafts_[0] = std::move(draft);
      return 0;
    }
    drafts_.push_back(std::move(draft));
    return drafts_.size() - 1;
  }

  void TakeRoles(const DocNode& node, std::size_t group) {
    for (const auto& name :
         ReadNameList(node, IsName, "the name of a role", kNameRule, problems_)) {
      const auto found = role_index_.find(name);
      if (found == role_index_.end()) {
        problems_.Error(node.mark, "the job has no role " + Quoted(name), KnownRoles());
      } else if (!owner_.emplace(found->second, group).second) {
        problems_.Error(node.mark, "the role " + Quoted(name) + " is in two groups",
                        "each role in one group");
      } else {
        drafts_[group].roles.push_back(found->second);
        roles_[found->second].role.group = static_cast<int>(group);
      }
    }
  }

  std::string KnownRoles() const {
    std::vector<std::string_view> names;
    names.reserve(role_index_.size());
    for (const auto& [name, index] : role_index_) names.push_back(name);
    if (names.size() > 20) names.resize(20);
    return JoinChoices(names);
  }

  void LinkParents() {
    for (std::size_t i = 1; i < drafts_.size(); ++i) {
      auto& draft = drafts_[i];
      std::size_t parent = 0;
      if (!draft.parent.empty() && draft.parent != kRootGroup) {
        const auto found = index_.find(draft.parent);
        if (found == index_.end()) {
          problems_.Error(draft.parent_mark, "there is no group " + Quoted(draft.parent),
                          "the name of another group, or nothing for the whole job");
          continue;
        }
        parent = found->second;
      }
      draft.group.parent = static_cast<int>(parent);
      ++drafts_[parent].children;
    }
  }

  // Every group reaches the root, and is either a leaf with roles or an inner one with groups.
  void CheckShape() {
    std::vector<char> good(drafts_.size(), 0);
    good[0] = 1;
    for (std::size_t i = 1; i < drafts_.size(); ++i) {
      std::vector<std::size_t> path;
      std::size_t at = i;
      while (good[at] == 0 && path.size() <= drafts_.size()) {
        good[at] = 2;
        path.push_back(at);
        at = static_cast<std::size_t>(drafts_[at].group.parent);
      }
      if (good[at] == 2) {
        problems_.Error(drafts_[at].parent_mark,
                        "the group " + Quoted(drafts_[at].group.name) + " is inside itself",
                        "parents that lead to the whole job");
      }
      for (const auto seen : path) good[seen] = 1;
    }
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      const auto& draft = drafts_[i];
      if (draft.children > 0 && !draft.roles.empty()) {
        problems_.Error(draft.mark,
                        "the group " + Quoted(draft.group.name) + " has both roles and groups",
                        "roles or groups; put the roles into a group of their own");
      } else if (draft.children == 0 && draft.roles.empty()) {
        problems_.Error(draft.mark, "the group " + Quoted(draft.group.name) + " is empty",
                        "`roles: [...]`, or groups that name it as their parent");
      }
    }
  }

  void SettleMinima(const DocNode& node) {
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      if (owner_.contains(i)) continue;
      problems_.Error(node.key_mark, "the role " + Quoted(roles_[i].role.name) + " is in no group",
                      "each role in one group");
    }
    for (auto& draft : drafts_) {
      std::int64_t least = draft.children;
      std::int64_t most = draft.children;
      for (const auto index : draft.roles) {
        const auto& role = roles_[index];
        least += role.least;
        most += role.role.count;
        if (draft.minimum && role.is_range) {
          problems_.Error(
              draft.minimum_mark,
              "the minimum is said twice: here and in `count` of role " + Quoted(role.role.name),
              "`minimum` with plain counts, or `count: 2..8` without `minimum`");
        }
      }
      if (draft.minimum && *draft.minimum > most && most > 0) {
        problems_.Error(draft.minimum_mark,
                        "`minimum` is above what the group has: " + std::to_string(most) +
                            (draft.roles.empty() ? " group(s)" : " worker(s)"),
                        "1 to " + std::to_string(most));
      }
      draft.group.minimum = static_cast<int>(draft.minimum.value_or(least));
    }
  }

  std::vector<RoleDraft>& roles_;
  Problems& problems_;
  std::vector<GroupDraft> drafts_;
  std::map<std::string, std::size_t> index_;
  std::map<std::string_view, std::size_t> role_index_;
  std::map<std::size_t, std::size_t> owner_;
};

// One role is the root itself; several are a root that needs them all.
void ImpliedGroups(std::vector<RoleDraft>& roles, TopologyWish topology, Job& job) {
  Group root;
  root.name = kRootGroup;
  root.topology = std::move(topology);
  root.minimum = roles.size() == 1 ? roles[0].least : static_cast<int>(roles.size());
  job.groups.push_back(std::move(root));
  if (roles.size() == 1) return;
  for (auto& draft : roles) {
    draft.role.group = static_cast<int>(job.groups.size());
    Group leaf;
    leaf.name = draft.role.name;
    leaf.parent = 0;
    leaf.minimum = draft.least;
    job.groups.push_back(std::move(leaf));
  }
}

}  // namespace

void BuildGroups(const DocNode* groups, std::vector<RoleDraft> roles, TopologyWish topology,
                 Job& job, Problems& problems) {
  if (groups == nullptr) {
    if (!roles.empty()) ImpliedGroups(roles, std::move(topology), job);
  } else if (!roles.empty()) {
    GroupTree tree(roles, problems);
    tree.Read(*groups);
    tree.Store(std::move(topology), job);
  }
  for (auto& draft : roles) job.roles.push_back(std::move(draft.role));
}

}  // namespace muster::model
