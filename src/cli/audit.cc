#include "cli/audit.h"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

struct AuditWords {
  std::string user, object, operation, since;
};
constexpr std::int64_t kAudited = 50;

// Every plain value under its path.
void Flatten(const Json& value, const std::string& path, std::map<std::string, std::string>& out) {
  if (value.is_null()) return;
  const bool objects = value.is_array() && !value.empty() && value.front().is_object();
  if (!value.is_object() && !objects) {
    out[path.empty() ? "value" : path] = Plain(value);
    return;
  }
  for (const auto& [key, child] : value.items()) {
    // Objects of a list are told by their names; a single one needs none.
    const auto name = !objects ? key : value.size() == 1 ? std::string() : child.value("name", key);
    const bool both = !path.empty() && !name.empty();
    Flatten(child, fmt::format("{}{}{}", path, both ? "." : "", name), out);
  }
}

std::string Listed(const std::map<std::string, std::string>& all,
                   const std::map<std::string, std::string>& other) {
  std::string out;
  for (const auto& [key, value] : all) {
    const auto same = other.find(key);
    if (same != other.end() && same->second == value) continue;
    if (!out.empty()) out += ", ";
    out += key;
    out += " " + value;
  }
  return out;
}

int Audit(Session& session, const AuditWords& words) {
  client::Client::Query query;
  for (const auto& [key, value] : {std::pair{"user", &words.user},
                                   {"object", &words.object},
                                   {"operation", &words.operation},
                                   {"since", &words.since}}) {
    if (!value->empty()) query[key] = *value;
  }
  return session.Show(session.List("audit", query), [&](const Json& got) {
    Rows rows;
    for (const auto& one : got.at("audit")) {
      rows.push_back({Clock(TimeMs(one, "at")), one.value("user", ""), one.value("from", ""),
                      one.value("operation", ""), one.value("object", "")});
      if (!session.wide()) continue;
      const auto [before, after] =
          Difference(one.value("before", Json()), one.value("after", Json()));
      rows.back().insert(rows.back().begin(), Plain(one.at("id")));
      rows.back().push_back(before.empty() ? "-" : before);
      rows.back().push_back(after.empty() ? "-" : after);
    }
    std::vector<std::string> head = {"TIME", "USER", "FROM", "OPERATION", "OBJECT"};
    if (session.wide()) {
      head.insert(head.begin(), "NUMBER");
      head.insert(head.end(), {"BEFORE", "AFTER"});
    }
    session.Table(head, rows, {"FROM"});
    if (got.contains("next")) std::cerr << "there is more; --limit shows it\n";
  });
}

}  // namespace

std::vector<std::string> AuditedOperations(const Json& openapi) {
  const Json::json_pointer names("/components/schemas/Change/enum");
  if (!openapi.is_object() || !openapi.contains(names)) return {};
  return openapi.at(names).get<std::vector<std::string>>();
}

std::pair<std::string, std::string> Difference(const Json& before, const Json& after) {
  std::map<std::string, std::string> left, right;
  Flatten(before, "", left);
  Flatten(after, "", right);
  return {Listed(left, right), Listed(right, left)};
}

void AddAuditVerb(Verbs& verbs) {
  auto w = std::make_shared<AuditWords>();
  auto* audit = verbs.Add(
      verbs.app(), "audit", "Who changed what, newest first",
      "muster audit --user ana --since 24h\nmuster audit --object 'queue vision' -o wide\n"
      "muster audit --operation cancelJob",
      [w](Session& s) { return Audit(s, *w); });
  AddOption(audit, "-u,--user", w->user, "by this user");
  AddOption(audit, "--object", w->object, "of this object, as \"job 7\" or \"queue vision\"");
  AddOption(audit, "--operation", w->operation, "of this kind, as cancelJob");
  AddOption(audit, "--since", w->since, "within that time, as 24h");
  verbs.IsList(audit, kAudited);
}

}  // namespace muster::cli
