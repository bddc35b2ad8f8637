#include "api/identity.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "api/tokens.h"

namespace muster::api {
namespace {

constexpr std::int64_t kRememberedMs = 60'000;
constexpr std::int64_t kFailureMs = 5'000;
constexpr std::size_t kMostRemembered = 10'000;
constexpr std::size_t kMostWaiting = 1'000;
constexpr std::size_t kEntryBytes = 65'536;
constexpr int kMostGroups = 65'536;

tl::unexpected<Error> NoAnswer(const std::string& who) {
  return Fail(ErrorCode::kUnavailable, "the account database gives no answer about " + who,
              "try again; on the server `getent passwd` shows whether it works");
}

// Names of its groups. A group without a name gives no rights.
Result<std::vector<std::string>> GroupsOf(const passwd& account) {
  std::vector<gid_t> ids(256);
  for (;;) {
    int count = static_cast<int>(ids.size());
    if (::getgrouplist(account.pw_name, account.pw_gid, ids.data(), &count) >= 0) {
      ids.resize(static_cast<std::size_t>(count));
      break;
    }
    if (ids.size() >= kMostGroups) return NoAnswer(account.pw_name);
    ids.resize(2 * ids.size());
  }
  std::vector<std::string> names;
  std::vector<char> buffer(kEntryBytes);
  for (const gid_t id : ids) {
    group entry{};
    group* found = nullptr;
    const int failed = ::getgrgid_r(id, &entry, buffer.data(), buffer.size(), &found);
    if (failed == 0 && found != nullptr) names.emplace_back(found->gr_name);
  }
  return names;
}

// `ask` is one of the look-ups of <pwd.h>. Without an account there is no error.
template <typename Ask>
Result<void> FillFrom(const Ask& ask, control::Caller& caller) {
  std::vector<char> buffer(kEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int failed = ask(&entry, buffer.data(), buffer.size(), &found);
  const bool absent = failed == 0 || failed == ENOENT || failed == ESRCH || failed == EBADF;
  if (found == nullptr) return absent ? Result<void>() : NoAnswer(caller.user);
  auto groups = GroupsOf(*found);
  if (!groups) return tl::unexpected(groups.error());
  caller.user = found->pw_name;
  caller.groups = std::move(*groups);
  caller.account = {found->pw_uid, found->pw_gid};
  return {};
}

Result<control::Caller> ByUid(std::uint32_t uid) {
  control::Caller caller;
  caller.user = std::to_string(uid);
  caller.from = "unix uid " + caller.user;
  caller.is_root = uid == 0 || uid == ::geteuid();
  auto filled = FillFrom([uid](auto... rest) { return ::getpwuid_r(uid, rest...); }, caller);
  if (!filled) return tl::unexpected(filled.error());
  return caller;
}

Result<control::Caller> ByName(const std::string& name) {
  control::Caller caller;
  caller.user = name;
  auto filled =
      FillFrom([&name](auto... rest) { return ::getpwnam_r(name.c_str(), rest...); }, caller);
  if (!filled) return tl::unexpected(filled.error());
  caller.user = name;
  return caller;
}

}  // namespace

tl::unexpected<Error> Nobody(const std::string& why) {
  Error error{ErrorCode::kDenied, why,
              "`muster token create NAME` on that machine makes one, `muster login URL` "
              "stores it"};
  error.path = "Authorization";
  return tl::unexpected(std::move(error));
}

void TokenBook::Fill(const state::State& state) {
  const std::lock_guard lock(mutex_);
  tokens_ = {state.tokens().begin(), state.tokens().end()};
}

void TokenBook::Follow(const state::State& state, const model::EventBody& body) {
  if (const auto* removed = std::get_if<model::UserRemoved>(&body)) {
    const std::lock_guard lock(mutex_);
    std::erase_if(tokens_, [&](const auto& one) { return one.second.user == removed->name; });
    return;
  }
  const auto* made = std::get_if<model::TokenMade>(&body);
  const auto* revoked = std::get_if<model::TokenRevoked>(&body);
  if (made == nullptr && revoked == nullptr) return;
  const auto& id = made != nullptr ? made->id : revoked->id;
  const auto found = state.tokens().find(id);
  const std::lock_guard lock(mutex_);
  if (found == state.tokens().end()) {
    tokens_.erase(id);
  } else {
    tokens_[id] = found->second;
  }
}

Result<state::TokenRecord> TokenBook::Find(const std::string& header) const {
  constexpr std::string_view kBearer = "Bearer ";
  const auto given = header.starts_with(kBearer)
                         ? SplitToken(std::string_view(header).substr(kBearer.size()))
                         : std::nullopt;
  if (!given) return Nobody("the Authorization header holds no token of Muster");
  const auto hash = HashOf(given->secret);
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.find(given->id);
  if (found == tokens_.end() || !SameHash(found->second.hash, hash)) {
    return Nobody("the token is not known here; it may have been revoked");
  }
  return found->second;
}

struct Accounts::Asking {
  Key key;
  std::optional<state::TokenRecord> token;
};

Accounts::Accounts(const TokenBook& book, Clock& clock, Post post, LookUp look_up)
    : book_(book),
      clock_(clock),
      post_(std::move(post)),
      look_up_(std::move(look_up)),
      asker_(kMostWaiting) {}

Result<control::Caller> Accounts::LookUpAccount(const Key& key) {
  const auto* uid = std::get_if<std::uint32_t>(&key);
  return uid != nullptr ? ByUid(*uid) : ByName(std::get<std::string>(key));
}

Result<Accounts::Asking> Accounts::Read(const net::Request& request) const {
  const auto* header = request.Find("Authorization");
  if (header == nullptr) {
    if (!request.peer) return Nobody("this call needs a token");
    return Asking{request.peer->uid, {}};
  }
  auto token = book_.Find(*header);
  if (!token) return tl::unexpected(token.error());
  return Asking{token->user, std::move(*token)};
}

Result<std::optional<Identity>> Accounts::Of(const net::Request& request) const {
  const auto asking = Read(request);
  if (!asking) return tl::unexpected(asking.error());
  const auto found = known_.find(asking->key);
  if (found == known_.end() || found->second.until_ms <= NowMs()) return std::nullopt;
  if (!found->second.caller) return tl::unexpected(found->second.caller.error());
  control::Caller caller = *found->second.caller;
  if (!asking->token) {
    caller.account = {request.peer->uid, request.peer->gid};
    return Identity{std::move(caller), ""};
  }
  const auto& token = *asking->token;
  caller.from =
      "token " + token.name + " from " + (request.remote.empty() ? "this machine" : request.remote);
  if (!token.role.empty()) caller.cap = control::ParseRole(token.role);
  return Identity{std::move(caller), token.id};
}

Result<void> Accounts::Ask(const net::Request& request, std::function<void()> then) {
  auto asking = Read(request);
  if (!asking) return tl::unexpected(asking.error());
  const auto& key = asking->key;
  if (waiters_ >= kMostWaiting) {
    return Fail(ErrorCode::kUnavailable, "too many wait for the account database",
                "try again; on the server `getent passwd` shows whether it works");
  }
  ++waiters_;
  auto& waiting = waiting_[key];
  waiting.push_back(std::move(then));
  if (waiting.size() > 1) return {};  // it is being asked
  asker_.Do([this, key] { post_([this, key, caller = look_up_(key)] { Learn(key, caller); }); });
  return {};
}

// Where there is no answer it is not asked again and again.
void Accounts::Learn(const Key& key, Result<control::Caller> caller) {
  if (known_.size() >= kMostRemembered) known_.clear();
  const auto until_ms = NowMs() + (caller ? kRememberedMs : kFailureMs);
  known_.insert_or_assign(key, Known{std::move(caller), until_ms});
  const auto waiting = std::move(waiting_.extract(key).mapped());
  waiters_ -= waiting.size();
  for (const auto& then : waiting) then();
}

}  // namespace muster::api
