#include <iostream>
#include <memory>

#include "command.h"
#include "console.h"
#include "remote.h"

// weir reset: forgets the charges of a key.

namespace weir::app {
namespace {

struct Words {
  Remote remote;
  std::string key;
};

void Configure(CLI::App& word, int& exit_code) {
  auto words = std::make_shared<Words>();
  word.add_option("bucket", words->key, "The bare key, such as user-123")->required();
  words->remote.AddTo(word);
  word.callback([words, &exit_code] {
    exit_code = words->remote.Ask("POST", "/admin/reset/" + UrlEscaped(words->key), {},
                                  [&](const ServiceReply&) -> int {
                                    if (!words->remote.json) {
                                      std::cout << "reset " << Shown(words->key) << '\n';
                                    }
                                    return kExitOk;
                                  });
  });
}

const Command kReset("reset", "Forget what a key has been charged.", Configure);

}  // namespace
}  // namespace weir::app
