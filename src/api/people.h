// People: the calls about users, tokens, the caller itself and the audit trail.
//
// Nobody gets more from a token than it has itself. The trail is read by admins as a whole, by
// admins of a queue as far as it is about that, and by everybody about themselves.
#pragma once

#include "api/desk.h"

namespace muster::api {

void ListUsers(Desk& desk, const Call& call);
void GetUser(Desk& desk, const Call& call);
void PutUser(Desk& desk, const Call& call);
void DeleteUser(Desk& desk, const Call& call);
void ListTokens(Desk& desk, const Call& call);
void GetToken(Desk& desk, const Call& call);
void CreateToken(Desk& desk, const Call& call);
void RevokeToken(Desk& desk, const Call& call);
void WhoAmI(Desk& desk, const Call& call);
void ListAudit(Desk& desk, const Call& call);

DocNode TokenNode(const state::TokenRecord& token, std::int64_t now_ms);
DocNode SpecOf(const state::UserRecord& user);
// The token, when it is the caller's or the caller is an admin; else null.
const state::TokenRecord* TokenOf(Controller& control, const Access& access, const std::string& id);
tl::unexpected<Error> NoToken(const std::string& id);

}  // namespace muster::api
