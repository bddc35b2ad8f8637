// Access: what one caller may do, from the members of the queues and the roles of users.
//
// A role that is given on a queue holds for the queues below it; the strongest one counts. A queue
// that names no members, nor any above it, is open: whoever can reach the daemon is a user there,
// which is what a box that its people share wants to be from the first minute. Root, and whoever
// the daemon runs as, are admins; a token may cap what its user may do. A caller always sees its
// own jobs. Made on the controller's thread; costs nothing but the caller's groups, since the
// members of queues are shared by all who were made since the last change of the queues.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/queue.h"
#include "state/state.h"

namespace muster::control {

enum class Role : std::uint8_t { kNone, kViewer, kUser, kQueueAdmin, kAdmin };
std::string_view Name(Role role);
Role ParseRole(std::string_view name);  // what is no role is none

// Said alike of what is not there, not remembered, and not to be seen.
Error NoJob(const std::string& word);

struct Caller {
  std::string user;
  std::vector<std::string> groups;
  // Its account on this machine; none: it can see and order, but runs nothing.
  struct Account {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
  };
  std::optional<Account> account{};
  std::string from;         // "unix uid 1000", "token laptop from 10.0.0.3:51514"
  bool is_root = false;     // by the kernel's word
  Role cap = Role::kAdmin;  // at most this, whatever the user may do
};

// Members and their roles, by queue, and the strongest that each has anywhere: most calls ask only
// for that, and there may be thousands of queues.
struct Members {
  std::unordered_map<std::string, std::map<std::string, std::string>> by_queue;
  std::unordered_map<std::string, Role> strongest;
  bool open = false;  // some queue is, to everybody
};
std::shared_ptr<const Members> MembersOf(const std::vector<model::Queue>& queues);

class Access {
 public:
  Access(const state::State& state, std::shared_ptr<const Members> members, Caller caller);

  const Caller& caller() const { return caller_; }
  const std::vector<std::string>& groups() const { return groups_; }
  bool IsAdmin() const { return everywhere_ == Role::kAdmin; }
  Role On(const std::string& queue) const;
  Role Strongest() const;  // on any queue

  bool Sees(const std::string& user, const std::string& queue) const;
  bool Acts(const std::string& user, const std::string& queue) const;

  Result<void> MayView() const;
  Result<void> MaySubmit(const std::string& queue) const;
  Result<void> MayPrioritize(const std::string& queue, std::int64_t priority) const;
  Result<void> MaySee(const state::JobRecord& job) const;
  Result<void> MayAct(const state::JobRecord& job) const;  // also: read its output
  // Whoever enters a job runs programs as its user, so an admin of its queue does not.
  Result<void> MayEnter(const state::JobRecord& job) const;
  Result<void> MayAdminister(const std::string& queue) const;
  Result<void> MayAdministerAll() const;

 private:
  bool IsMe(const std::string& member) const;

  Caller caller_;
  std::vector<std::string> groups_;
  Role everywhere_ = Role::kNone;
  bool shut_out_ = false;  // by an explicit role of `none`
  std::shared_ptr<const Members> members_;
  mutable std::unordered_map<std::string, Role> roles_;
};

// What a job file says of a queue that is not there. Tells of queues that sound like it, where the
// caller may see them; null: it sees all.
Error NoQueue(const std::vector<model::Queue>& queues, const Access* access,
              const std::string& name);

}  // namespace muster::control
