// Requests: a call as the API sees it, taken apart once, and the forms of its answers.
//
// Who calls over the Unix socket is what the kernel says of its other end; names and groups are
// looked up in the account database and remembered for a minute, since that may be a server
// elsewhere. Who calls over TCP is told by its token, which only the controller's state can say.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  control::Caller peer;  // of the Unix socket; without a user: over TCP

  const Operation& operation() const { return *match.operation; }
  const std::string& Path(const std::string& name) const { return match.path.at(name); }
  std::string Text(const std::string& name) const;
  bool Flag(const std::string& name) const;
  // The router has checked that it is a number where there is one.
  std::int64_t Number(const std::string& name, std::int64_t otherwise) const;
  bool dry_run() const { return Flag("dry_run"); }
};

// On the server's thread, and only there.
class Accounts {
 public:
  control::Caller Of(const net::Peer& peer, std::int64_t now_ms);

 private:
  struct Known {
    control::Caller caller;
    std::int64_t until_ms = 0;
  };
  std::map<std::uint32_t, Known> known_;
};

// The caller, by the peer of the socket or by the token. The error says why it is nobody.
Result<control::Caller> Identify(const state::State& state, const Call& call, std::int64_t now_ms);

int StatusOf(const Error& error);
void ReplyError(net::Exchange& exchange, const Error& error);
void ReplyNode(net::Exchange& exchange, const model::DocNode& node, int status,
               std::vector<net::Header> headers = {});

// What was read must still be so: the error is answered with 412.
Result<void> CheckMatch(const Call& call, const std::string& etag);
std::string TagOf(std::uint64_t revision);

}  // namespace muster::api
