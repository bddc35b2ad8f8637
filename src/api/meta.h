// Meta: the calls about Muster itself: health, version, the OpenAPI document, figures.
//
// Health says that the daemon answers, ready that the store takes what is written. Figures are
// worked out when they are asked for; nothing is counted for them but requests.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/desk.h"

namespace muster::api {

void GetHealth(Desk& desk, const Call& call);
void GetReady(Desk& desk, const Call& call);
void GetVersion(Desk& desk, const Call& call);
void GetOpenApi(Desk& desk, const Call& call, const model::DocNode& document);

struct Figures {
  std::map<std::string, std::uint64_t> requests;  // by operation
  std::size_t watchers = 0;
};
// For Prometheus.
void GetMetrics(Desk& desk, const Call& call, Figures figures);

}  // namespace muster::api
