// People: the calls about users, tokens, the caller itself and the audit trail.
#pragma once

#include "api/desk.h"

namespace muster::api {

void ListUsers(Desk& desk, const Call& call);
void PutUser(Desk& desk, const Call& call);
void DeleteUser(Desk& desk, const Call& call);
void ListTokens(Desk& desk, const Call& call);
void CreateToken(Desk& desk, const Call& call);
void RevokeToken(Desk& desk, const Call& call);
void WhoAmI(Desk& desk, const Call& call);
void ListAudit(Desk& desk, const Call& call);

}  // namespace muster::api
