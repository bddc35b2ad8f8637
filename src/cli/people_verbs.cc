// Who may come in: tokens and users.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/options.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

// How a change is to be made.
struct How {
  bool dry_run = false;
  const bool* yes = nullptr;  // do not ask

  client::Client::Query Query() const {
    client::Client::Query query;
    if (dry_run) query["dry_run"] = "1";
    return query;
  }
  // `asks`: null where it never does.
  void Flags(Verbs& verbs, CLI::App* command, const char* asks = nullptr) {
    AddFlag(command, "--dry-run", dry_run, "check everything and change nothing");
    verbs.Changes(command, asks);
    yes = &verbs.common().yes;
  }
  // 0: go on; else what to end with.
  int Ask(const std::string& question) const {
    const auto sure = Confirm(question, *yes || dry_run);
    if (!sure) return Refuse(sure.error());
    if (*sure) return 0;
    std::cerr << "nothing was changed\n";
    return 1;
  }
};

constexpr std::int64_t kLongestMs = std::int64_t{3650} * 24 * 3600 * 1000;  // of the API

struct TokenWords {
  std::string name, user, expires = "90d", role;
  std::vector<std::string> ids;
  How how;
};

int CreateToken(Session& session, const TokenWords& words) {
  if (words.expires != "never") {
    const auto lasts_ms = ParseDurationMs(words.expires);
    const bool wrong = !lasts_ms || *lasts_ms <= 0 || *lasts_ms > kLongestMs;
    if (wrong) {
      return Refuse({ErrorCode::kUsage,
                     "--expires: \"" + words.expires +
                         (lasts_ms ? "\" is no time that a token lasts" : "\" is no duration"),
                     "write it as 12h or 30d, at most 3650d, or never"});
    }
  }
  Json body = {{"name", words.name}, {"expires", words.expires}};
  if (!words.user.empty()) body["user"] = words.user;
  if (!words.role.empty()) body["role"] = words.role;
  const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto answer = session.client().Post("tokens", words.how.Query(), text);
  if (words.how.dry_run) {
    return session.Show(answer, [](const Json& got) {
      std::cout << "would make token " << got.value("name", "") << " of "
                << got.at("spec").value("user", "") << '\n';
    });
  }
  const int status =
      session.Show(answer, [](const Json& got) { std::cout << got.value("secret", "") << '\n'; });
  if (status != 0) return status;
  const auto got = Json::parse(*answer);
  const auto& spec = got.at("spec");
  std::cerr
      << "token " << got.value("id", "") << " of " << spec.value("user", "")
      << (spec.contains("expires_at") ? " ends " + spec.value("expires_at", "") : "")
      << ". It is not shown again: keep it like a password.\n"
      << "Use it with `muster login URL --token-stdin` or $MUSTER_TOKEN; `muster token revoke "
      << got.value("id", "") << "` ends it.\n";
  return 0;
}

int ListTokens(Session& session) {
  return session.Show(
      session.List("tokens"),
      {"ID", "NAME", "USER", "ROLE", "MADE", "ENDS", session.wide() ? "STATE" : ""},
      [&](const Json& got) {
        Rows rows;
        for (const auto& one : got.at("tokens")) {
          const auto& spec = one.at("spec");
          rows.push_back({one.value("id", ""), one.value("name", ""), spec.value("user", ""),
                          spec.value("role", "all"), Clock(TimeMs(one, "created_at")),
                          spec.contains("expires_at") ? Clock(TimeMs(spec, "expires_at")) : "never",
                          session.wide() ? one.at("status").value("phase", "") : ""});
        }
        return rows;
      });
}

struct Token {
  std::string id, name;
};

// By its id, else its name, else a beginning of an id that no other has.
Result<Token> FindToken(Session& session, const std::string& word) {
  const auto answer = AllPages(session.client(), "tokens");
  // Who may not list them may still have one, and know its id.
  if (!answer && answer.error().code == ErrorCode::kDenied) return Token{word, ""};
  if (!answer) return tl::unexpected(answer.error());
  std::vector<Token> named, begun;
  const auto got = Json::parse(*answer);
  for (const auto& one : got.at("tokens")) {
    Token token{one.value("id", ""), one.value("name", "")};
    if (token.id == word) return token;
    if (token.name == word) named.push_back(token);
    if (token.id.starts_with(word)) begun.push_back(std::move(token));
  }
  const auto& found = named.empty() ? begun : named;
  if (found.empty()) {
    return Fail(ErrorCode::kNotFound, "there is no token \"" + word + "\"",
                "`muster token list` shows those you may see");
  }
  if (found.size() == 1) return found.front();
  std::string ids;
  for (const auto& token : found) ids += (ids.empty() ? "" : ", ") + token.id;
  return Fail(ErrorCode::kConflict,
              fmt::format("\"{}\" {} several tokens: {}", word,
                          named.empty() ? "is the beginning of" : "is the name of", ids),
              "give the id of one");
}

int ShowToken(Session& session, const std::string& word) {
  const auto token = FindToken(session, word);
  if (!token) return Refuse(token.error());
  return session.Show(session.client().Get("tokens/" + token->id), [](const Json& got) {
    const auto& spec = got.at("spec");
    const auto line = [](const char* name, const std::string& value) {
      std::cout << fmt::format("{:<8} {}\n", name, value);
    };
    line("id", got.value("id", ""));
    line("name", got.value("name", ""));
    line("user", spec.value("user", ""));
    line("role", spec.value("role", "all that the user may do"));
    line("made", Clock(TimeMs(got, "created_at")));
    line("ends", spec.contains("expires_at") ? Clock(TimeMs(spec, "expires_at")) : "never");
  });
}

// All that are named must be there before one of them is ended.
int RevokeTokens(Session& session, const TokenWords& words) {
  std::vector<Token> tokens;
  for (const auto& word : words.ids) {
    auto token = FindToken(session, word);
    if (!token) return Refuse(token.error());
    tokens.push_back(std::move(*token));
  }
  const auto& first = tokens.front();
  const auto what = tokens.size() > 1    ? std::to_string(tokens.size()) + " tokens"
                    : first.name.empty() ? "token " + first.id
                                         : "token " + first.id + " (" + first.name + ")";
  if (const int stop = words.how.Ask("Revoke " + what + "?"); stop != 0) return stop;
  int status = 0;
  nlohmann::ordered_json document;
  for (const auto& token : tokens) {
    const auto answer = session.client().Delete("tokens/" + token.id, words.how.Query());
    if (!answer) {
      status = Refuse(answer.error());
      continue;
    }
    auto acted = nlohmann::ordered_json::parse(Acted(*answer));
    if (!token.name.empty()) acted["name"] = token.name;
    document["tokens"].push_back(std::move(acted));
  }
  if (document.is_null()) return status;
  const int shown = session.Show(document.dump(2), [](const Json& got) {
    for (const auto& one : got.at("tokens")) {
      std::cout << (one.value("dry_run", false) ? "would revoke token " : "revoked token ")
                << one.value("id", "") << " (" << one.value("name", "") << ")\n";
    }
  });
  return status != 0 ? status : shown;
}

struct UserWords {
  std::string name, role;
  std::vector<std::string> groups;
  How how;
};

int ListUsers(Session& session) {
  const char* more = session.wide() ? "TOKENS" : "";
  return session.Show(
      session.List("users"), {"USER", "ROLE", "GROUPS", more}, [&](const Json& got) {
        Rows rows;
        for (const auto& one : got.at("users")) {
          std::string groups;
          const auto& spec = one.at("spec");
          for (const auto& group : spec.at("groups")) {
            groups += (groups.empty() ? "" : ", ") + Plain(group);
          }
          rows.push_back({one.value("name", ""), spec.value("role", ""), groups,
                          session.wide() ? Plain(one.at("status").at("tokens")) : ""});
        }
        return rows;
      });
}

int SetUser(Session& session, const UserWords& words) {
  const Json body = {{"role", words.role}, {"groups", words.groups}};
  const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto answer = session.client().Call("PUT", "users/" + words.name, words.how.Query(), text, {});
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(answer->body), [&](const Json& got) {
    std::cout << "user " << got.value("name", "") << (words.how.dry_run ? " would be " : " is ")
              << words.role << '\n';
  });
}

int RemoveUser(Session& session, const UserWords& words) {
  const int stop = words.how.Ask("Remove user " + words.name + " and its tokens?");
  if (stop != 0) return stop;
  const auto answer = session.client().Delete("users/" + words.name, words.how.Query());
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(*answer), [](const Json& got) {
    std::cout << "user " << got.value("name", "")
              << (got.value("dry_run", false) ? " would have" : " has")
              << " no role of its own any more, and no tokens\n";
  });
}

void AddTokenVerbs(Verbs& verbs) {
  CLI::App* token = verbs.Group("token", "Tokens for calls over a network");
  auto w = std::make_shared<TokenWords>();
  auto* create = verbs.Add(token, "create", "Make a token; its secret is shown once",
                           "muster token create laptop --expires 30d --role viewer",
                           [w](Session& s) { return CreateToken(s, *w); });
  AddOption(create, "NAME", w->name, "what it is for").Required();
  AddOption(create, "--user", w->user, "another user's, for admins");
  AddOption(create, "--expires", w->expires, "from now on; default 90d; never: admins only");
  AddOption(create, "--role", w->role, "viewer or user: no more than this")
      .OneOf({"viewer", "user"});
  w->how.Flags(verbs, create);
  verbs.IsList(
      verbs.Add(token, "list", "My tokens; for admins all", "muster token list", ListTokens));
  auto* show = verbs.Add(token, "show", "One token, without its secret", "muster token show laptop",
                         [w](Session& s) { return ShowToken(s, w->name); });
  AddOption(show, "TOKEN", w->name, "its name, its id or a beginning of that")
      .Required()
      .NameOf("token");
  auto* revoke = verbs.Add(token, "revoke", "End tokens at once",
                           "muster token revoke laptop --yes\nmuster token revoke 3f9a21 --yes",
                           [w](Session& s) { return RevokeTokens(s, *w); });
  AddOption(revoke, "TOKEN", w->ids, "names, ids or beginnings of ids").Required().NameOf("token");
  w->how.Flags(verbs, revoke, "do not ask");
}

void AddUserVerbs(Verbs& verbs) {
  CLI::App* user = verbs.Group("user", "Users with a role of their own");
  auto w = std::make_shared<UserWords>();
  verbs.IsList(verbs.Add(user, "list", "List users", "muster user list", ListUsers));
  auto* set = verbs.Add(user, "set", "Give a user a role everywhere, and groups",
                        "muster user set ana --role user --group vision",
                        [w](Session& s) { return SetUser(s, *w); });
  AddOption(set, "NAME", w->name, "the user").Required().NameOf("user");
  AddOption(set, "--role", w->role, "none, viewer, user or admin")
      .Required()
      .OneOf({"none", "viewer", "user", "admin"});
  AddOption(set, "--group", w->groups, "a group; may be given several times; replaces those there");
  w->how.Flags(verbs, set);
  auto* remove =
      verbs.Add(user, "remove", "Take the role away, and the user's tokens",
                "muster user remove ana --yes", [w](Session& s) { return RemoveUser(s, *w); });
  AddOption(remove, "NAME", w->name, "the user").Required().NameOf("user");
  w->how.Flags(verbs, remove, "do not ask");
}

}  // namespace

void AddPeopleVerbs(Verbs& verbs) {
  AddTokenVerbs(verbs);
  AddUserVerbs(verbs);
}

}  // namespace muster::cli
