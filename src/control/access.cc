#include "control/access.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::control {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"none", "viewer", "user", "queue-admin",
                                                    "admin"};

constexpr std::int64_t kHighestOfUsers = 125;  // critical

tl::unexpected<Error> Denied(const std::string& what, const std::string& hint) {
  return Fail(ErrorCode::kDenied, what, hint);
}

}  // namespace

std::string_view Name(Role role) { return kNames[static_cast<std::size_t>(role)]; }

Error NoJob(const std::string& word) {
  return {ErrorCode::kNotFound, "there is no job \"" + word + "\"",
          "`muster ps --all` lists those you may see"};
}

Role ParseRole(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? Role::kNone : static_cast<Role>(found - kNames.begin());
}

std::shared_ptr<const Members> MembersOf(const std::vector<model::Queue>& queues) {
  auto members = std::make_shared<Members>();
  auto& by_queue = members->by_queue;
  for (const auto& queue : queues) {
    by_queue.emplace(queue.name, queue.members);
    for (const auto& [member, given] : queue.members) {
      auto& best = members->strongest[member];
      best = std::max(best, std::min(ParseRole(given), Role::kQueueAdmin));
    }
  }
  const auto has_members = [&](const std::string& name) {
    const auto found = by_queue.find(name);
    return found != by_queue.end() && !found->second.empty();
  };
  for (const auto& queue : queues) {
    bool open = true;
    for (std::string name = queue.name; open && !name.empty();) {
      open = !has_members(name);
      const auto slash = name.rfind('/');
      name.resize(slash == std::string::npos ? 0 : slash);
    }
    members->open |= open;
    if (open) break;
  }
  return members;
}

Access::Access(const state::State& state, std::shared_ptr<const Members> members, Caller caller)
    : caller_(std::move(caller)), groups_(caller_.groups), members_(std::move(members)) {
  const auto known = state.users().find(caller_.user);
  if (known != state.users().end()) {
    const auto& groups = known->second.groups;
    groups_.insert(groups_.end(), groups.begin(), groups.end());
    everywhere_ = ParseRole(known->second.role);
    shut_out_ = everywhere_ == Role::kNone;
  }
  if (caller_.is_root) everywhere_ = Role::kAdmin;
  everywhere_ = std::min(everywhere_, caller_.cap);
}

bool Access::IsMe(const std::string& member) const {
  if (member.starts_with("group:")) {
    return std::find(groups_.begin(), groups_.end(), member.substr(6)) != groups_.end();
  }
  return member == "user:" + caller_.user || member == caller_.user;
}

Role Access::On(const std::string& queue) const {
  if (IsAdmin()) return Role::kAdmin;
  const auto known = roles_.find(queue);
  if (known != roles_.end()) return known->second;
  Role role = everywhere_;
  const auto& by_queue = members_->by_queue;
  bool open = !shut_out_ && by_queue.contains(queue);  // of one that is gone nobody is a member
  for (std::string name = queue; !name.empty();) {
    if (const auto found = by_queue.find(name); found != by_queue.end()) {
      for (const auto& [member, given] : found->second) {
        open = false;
        if (IsMe(member) && !shut_out_) role = std::max(role, ParseRole(given));
      }
    }
    const auto slash = name.rfind('/');
    name.resize(slash == std::string::npos ? 0 : slash);
  }
  if (open) role = std::max(role, Role::kUser);
  role = std::min({role, caller_.cap, Role::kQueueAdmin});  // over everything only from above
  roles_.emplace(queue, role);
  return role;
}

Role Access::Strongest() const {
  if (shut_out_) return everywhere_;
  Role best = members_->open ? Role::kUser : Role::kNone;
  const auto count = [&](const std::string& member) {
    const auto found = members_->strongest.find(member);
    if (found != members_->strongest.end()) best = std::max(best, found->second);
  };
  count(caller_.user);
  count("user:" + caller_.user);
  for (const auto& group : groups_) count("group:" + group);
  return std::max(everywhere_, std::min(best, caller_.cap));
}

bool Access::Sees(const std::string& user, const std::string& queue) const {
  return IsAdmin() || user == caller_.user || On(queue) >= Role::kViewer;
}

bool Access::Acts(const std::string& user, const std::string& queue) const {
  if (user == caller_.user) return caller_.cap >= Role::kUser;
  return On(queue) >= Role::kQueueAdmin;
}

Result<void> Access::MayView() const {
  if (Strongest() >= Role::kViewer) return {};
  return Denied("user " + caller_.user + " has no role here",
                "ask an admin for one: a member of a queue, or `muster user set`");
}

Result<void> Access::MaySubmit(const std::string& queue) const {
  if (On(queue) >= Role::kUser) return {};
  return Denied("user " + caller_.user + " may not submit to queue " + queue,
                "ask its admin to add you to its `members`; `muster whoami` shows your roles");
}

Result<void> Access::MayPrioritize(const std::string& queue, std::int64_t priority) const {
  if (priority <= kHighestOfUsers || On(queue) >= Role::kQueueAdmin) return {};
  return Denied("priorities above " + std::to_string(kHighestOfUsers) +
                    " are given by admins of queue " + queue,
                "low, normal, high, build and critical are for everybody");
}

// What may not be seen is as if it were not there.
Result<void> Access::MaySee(const state::JobRecord& job) const {
  if (Sees(job.user, job.spec->queue)) return {};
  return tl::unexpected(NoJob(std::to_string(job.id)));
}

Result<void> Access::MayAct(const state::JobRecord& job) const {
  if (auto seen = MaySee(job); !seen) return seen;
  if (Acts(job.user, job.spec->queue)) return {};
  return Denied("job " + std::to_string(job.id) + " belongs to " + job.user,
                "only its owner and the admins of queue " + job.spec->queue + " may do that");
}

Result<void> Access::MayEnter(const state::JobRecord& job) const {
  if (auto seen = MaySee(job); !seen) return seen;
  const bool mine = job.user == caller_.user && caller_.cap >= Role::kUser;
  // Over what belongs to root only root itself has power, by the kernel's word.
  if (job.uid == 0 ? caller_.is_root : mine || IsAdmin()) return {};
  return Denied("job " + std::to_string(job.id) + " runs as " + job.user,
                "only its owner may enter it, and an admin where it is not root's");
}

Result<void> Access::MayAdminister(const std::string& queue) const {
  if (On(queue) >= Role::kQueueAdmin) return {};
  return Denied("user " + caller_.user + " is no admin of queue " + queue,
                "ask an admin of the queue above it");
}

Error NoQueue(const std::vector<model::Queue>& queues, const Access* access,
              const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto& queue : queues) {
    if (access == nullptr || access->On(queue.name) >= Role::kViewer) names.push_back(queue.name);
  }
  const auto near = model::Nearest(name, names);
  Error error{
      ErrorCode::kInvalid, "queue \"" + name + "\" does not exist",
      near.empty() ? "`muster queue list` shows them" : "did you mean " + std::string(near) + "?"};
  error.path = "queue";
  return error;
}

Result<void> Access::MayAdministerAll() const {
  if (IsAdmin()) return {};
  return Denied("user " + caller_.user + " is no admin", "`muster whoami` shows your roles");
}

}  // namespace muster::control
