// Tells speedscope to load what is beside this page: it takes a path, and only of a page that is a file.
const folder = location.pathname.replace(/^\//, "").replace(/[^/]*$/, "");
if (location.protocol === "file:" && location.hash === "") {
    location.hash = "localProfilePath=" + encodeURIComponent(folder + "trace.js");
}
