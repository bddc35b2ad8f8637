// Meta: the calls about Muster itself: health, version, the OpenAPI document.
//
// Health says that the daemon answers, ready that the store takes what is written.
#pragma once

#include "api/desk.h"

namespace muster::api {

void GetHealth(Desk& desk, const Call& call);
void GetReady(Desk& desk, const Call& call);
void GetVersion(Desk& desk, const Call& call);
void GetOpenApi(Desk& desk, const Call& call, const model::DocNode& document);

}  // namespace muster::api
