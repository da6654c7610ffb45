#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace weir::test {

/// Gives a folder and what is in it to the system user that a database server runs as; as anybody
/// but root, does nothing.
void GiveTo(const std::string& user, const std::filesystem::path& path);

/// The files of a new, empty database, made once per build directory: `make` is given the folder to
/// make, which belongs to `user`, beside an empty folder `tmp`. Tests that ask at the same time
/// wait for the one that makes it.
std::filesystem::path DatabaseTemplate(
    const std::string& name, const std::string& user,
    const std::function<void(const std::filesystem::path& folder)>& make);

}  // namespace weir::test
