// Requests: a call as the API sees it, taken apart once, and the forms of its answers.
//
// The call is checked against the OpenAPI document and its caller is known before one is made. Who
// only showed a token runs nothing as root, and a daemon that is not root runs things as itself
// alone: otherwise a token would be worth more than the role it was given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/identity.h"
#include "api/router.h"
#include "base/result.h"
#include "control/access.h"
#include "model/document_writer.h"
#include "net/http_server.h"

namespace muster::api {

struct Call {
  std::shared_ptr<const net::Request> request;
  std::shared_ptr<net::Exchange> exchange;
  Match match;
  control::Caller caller;
  std::string token;   // the id of the one it showed; empty: known by the socket
  std::string digest;  // DigestOf(), where that is known already

  const Operation& operation() const { return *match.operation; }
  const std::string& Path(const std::string& name) const { return match.path.at(name); }
  std::string Text(const std::string& name) const;
  bool Flag(const std::string& name) const;
  // The router has checked that it is a number where there is one.
  std::int64_t Number(const std::string& name, std::int64_t otherwise) const;
  bool dry_run() const { return Flag("dry_run"); }
};

// The account that a job of this caller runs as, or why it can have none.
Result<control::Caller::Account> AccountOf(const Call& call);

int StatusOf(const Error& error);
net::Response ErrorResponse(const Error& error, int status);
void ReplyError(net::Exchange& exchange, const Error& error);
void ReplyNode(net::Exchange& exchange, const model::DocNode& node, int status,
               std::vector<net::Header> headers = {});
void ReplyJson(net::Exchange& exchange, std::string text, int status,
               std::vector<net::Header> headers = {});

// What was read must still be so: the error is answered with 412. Without a tag it is not there.
Result<void> CheckMatch(const Call& call, const std::string& etag);
std::string TagOf(std::uint64_t revision);

// The key under which a change may be repeated; empty: none. A dry run changes nothing and has
// none.
std::string KeyOf(const Call& call);
// Of all that was asked for: the call, its parameters and its body.
std::string DigestOf(const Call& call);

// The body as one map; what is wrong with it goes to `problems`.
model::DocNode BodyMap(const Call& call, model::Problems& problems);

}  // namespace muster::api
