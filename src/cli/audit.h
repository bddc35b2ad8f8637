// Audit: who changed what, and which words its filter takes.
//
// The operations are those of the daemon's own OpenAPI document, so a word that can stand in no
// line of the trail is refused with the list instead of giving an empty one. Before and after are
// shown briefly: what is the same in both is left out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

// Those that change something or enter a job; none where the document is not one.
std::vector<std::string> AuditedOperations(const nlohmann::json& openapi);

// What differs, as "quota.gpus 2" before and "quota.gpus 3" after.
std::pair<std::string, std::string> Difference(const nlohmann::json& before,
                                               const nlohmann::json& after);

}  // namespace muster::cli
