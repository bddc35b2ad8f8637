#include "control/access.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::control {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"none", "viewer", "user", "queue-admin",
                                                    "admin"};

tl::unexpected<Error> Denied(const std::string& what, const std::string& hint) {
  return Fail(ErrorCode::kDenied, what, hint);
}

}  // namespace

std::string_view Name(Role role) { return kNames[static_cast<std::size_t>(role)]; }

Role ParseRole(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? Role::kNone : static_cast<Role>(found - kNames.begin());
}

Access::Access(const state::State& state, Caller caller)
    : caller_(std::move(caller)), groups_(caller_.groups) {
  const auto known = state.users().find(caller_.user);
  if (known != state.users().end()) {
    const auto& groups = known->second.groups;
    groups_.insert(groups_.end(), groups.begin(), groups.end());
    everywhere_ = ParseRole(known->second.role);
    shut_out_ = everywhere_ == Role::kNone;
  }
  if (caller_.is_root) everywhere_ = Role::kAdmin;
  everywhere_ = std::min(everywhere_, caller_.cap);
  for (const auto& queue : state.queues()) queues_.emplace(queue.name, queue.members);
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
  bool open = !shut_out_ && queues_.contains(queue);  // of one that is gone nobody is a member
  for (std::string name = queue; !name.empty();) {
    if (const auto found = queues_.find(name); found != queues_.end()) {
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
  Role best = everywhere_;
  for (const auto& [name, members] : queues_) best = std::max(best, On(name));
  return best;
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

// What may not be seen is as if it were not there.
Result<void> Access::MaySee(const state::JobRecord& job) const {
  if (Sees(job.user, job.spec->queue)) return {};
  return Fail(ErrorCode::kNotFound, "there is no job " + std::to_string(job.id),
              "`muster ps --all` lists those you may see");
}

Result<void> Access::MayAct(const state::JobRecord& job) const {
  if (auto seen = MaySee(job); !seen) return seen;
  if (Acts(job.user, job.spec->queue)) return {};
  return Denied("job " + std::to_string(job.id) + " belongs to " + job.user,
                "only its owner and the admins of queue " + job.spec->queue + " may do that");
}

Result<void> Access::MayAdminister(const std::string& queue) const {
  if (On(queue) >= Role::kQueueAdmin) return {};
  return Denied("user " + caller_.user + " is no admin of queue " + queue,
                "ask an admin of the queue above it");
}

Result<void> Access::MayAdministerAll() const {
  if (IsAdmin()) return {};
  return Denied("user " + caller_.user + " is no admin", "`muster whoami` shows your roles");
}

}  // namespace muster::control
