// Requests: a call as the API sees it, taken apart once, and the forms of its answers.
//
// Who calls is what the kernel says of the other end of the Unix socket; a name that the account
// database does not have is shown as its number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/document_writer.h"
#include "net/http_server.h"

namespace muster::api {

struct Call {
  std::shared_ptr<const net::Request> request;
  std::shared_ptr<net::Exchange> exchange;
  std::vector<std::string> words;  // of the path behind /api/v1
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  std::string Text(const std::string& name) const;
  bool Flag(const std::string& name) const;
  std::int64_t Number(const std::string& name, std::int64_t otherwise) const;
};

Call MakeCall(net::Request request, std::shared_ptr<net::Exchange> exchange);
std::string_view CodeName(ErrorCode code);
void ReplyError(net::Exchange& exchange, const Error& error);
void ReplyNode(net::Exchange& exchange, const model::DocNode& node, int status);

}  // namespace muster::api
