// Pages opened as files may start no Worker, so the site's search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.loaded = this.load(script);
      this.inside.importScripts = (...scripts) =>
        scripts.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
    }

    load(script) {
      return new Promise((done, failed) => {
        const element = this.inside.document.createElement("script");
        Object.assign(element, { src: new URL(script, location.href).href, onload: done, onerror: failed });
        this.inside.document.documentElement.append(element);
      });
    }

    postMessage(data) {
      this.loaded.then(() => {
        const event = new this.inside.MessageEvent("message", { data });
        this.inside.dispatchEvent(event);
      });
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
